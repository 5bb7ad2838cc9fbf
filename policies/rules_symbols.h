/* SPDX-License-Identifier: MIT */
/*
 * rules_symbols: address ranges of the functions that `symbol` rules name, from the bytes of a module's
 * file. Functions of .symtab, else of .dynsym; a glob is matched with the linkage name and, where that
 * is a plain _ZN...E mangling, with the nested name "A::B::f" and its last parts "B::f" and "f".
 * Templates and operators are matched by linkage name.
 *
 * Pure: the caller maps the file and knows where it is loaded. Nothing in the file is trusted. A slow
 * path, once per module; one thread at a time per `ranges`, readers go on meanwhile.
 */
#ifndef TM_POLICIES_RULES_SYMBOLS_H
#define TM_POLICIES_RULES_SYMBOLS_H

#include "policies/rules_match.h"

struct tm_rules_module {
	struct tm_str name; /* file name without folders: `module` of the same rule must match it */
	const void *file;   /* the whole file's bytes */
	size_t file_bytes;
	uint32_t first_rule; /* those before it are done */
	uintptr_t load_bias; /* address in memory less address in the file's symbols */
};

/*
 * Adds the ranges of the module to `ranges`. Returns how many; what finds no room is left out, and
 * counted in *ret_lost, which may be NULL.
 */
uint32_t tm_rules_symbols_add(const struct tm_rules *rules, struct tm_rules_ranges *ranges,
			      const struct tm_rules_module *module, uint32_t *ret_lost);

/* "A::B::f" of "_ZN1A1B1fEv", terminated; the length, or 0 where the name is not of that kind or long. */
size_t tm_rules_symbols_nested(struct tm_str linkage_name, char *buf, size_t size);

#endif
