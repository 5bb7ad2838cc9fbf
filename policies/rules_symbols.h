/* SPDX-License-Identifier: MIT */
/*
 * rules_symbols: finds the address ranges of the functions that `symbol` rules name, in the bytes
 * of a module's file. It reads the functions in .symtab, else in .dynsym. A glob is matched against
 * the linkage name and, if that is a plain _ZN...E mangling, also against the nested name "A::B::f"
 * and its suffixes "B::f" and "f". Templates and operators are matched by linkage name only.
 *
 * Pure: the caller maps the file and knows where it is loaded. Nothing in the file is trusted. A
 * slow path, run once per module, by one thread at a time per `ranges`; readers continue meanwhile.
 */
#ifndef TM_POLICIES_RULES_SYMBOLS_H
#define TM_POLICIES_RULES_SYMBOLS_H

#include "policies/rules_match.h"

struct tm_rules_module {
	/* file name without folders; the rule's `module`, if any, must match it */
	struct tm_str name;
	const void *file; /* the whole file's bytes */
	size_t file_bytes;
	uint32_t first_rule; /* first rule to look at; earlier ones were done before */
	uintptr_t load_bias; /* address in memory less address in the symbol table */
};

/*
 * Adds the module's ranges to `ranges` and returns how many. Ranges that do not fit are dropped and
 * counted in *ret_lost, which may be NULL.
 */
uint32_t tm_rules_symbols_add(const struct tm_rules *rules, struct tm_rules_ranges *ranges,
			      const struct tm_rules_module *module, uint32_t *ret_lost);

/*
 * Writes the nested name, such as "A::B::f" of "_ZN1A1B1fEv", NUL-terminated. Returns its length,
 * or 0 if the name is not of that kind or does not fit.
 */
size_t tm_rules_symbols_nested(struct tm_str linkage_name, char *buf, size_t size);

#endif
