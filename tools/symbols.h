/* SPDX-License-Identifier: MIT */
/*
 * symbols: functions and lines of addresses, from files alone. A module is found by its build-id: at
 * the path it was loaded from if that still has the same one, else as a debug file. Names come from
 * DWARF or .symtab; never from the nearest dynamic symbol, which is a guess: then there is none, and
 * the caller prints module+0xoffset.
 *
 * Built with elfutils (--with-libdw); without, every look-up finds nothing. One thread.
 */
#ifndef TM_TOOLS_SYMBOLS_H
#define TM_TOOLS_SYMBOLS_H

#include "shim/base/attrs.h"

enum tm_symbols_from { TM_SYMBOLS_NONE, TM_SYMBOLS_SYMTAB, TM_SYMBOLS_DEBUG };

struct tm_symbol {
	const char *function; /* demangled; NULL: not known */
	const char *raw;      /* as the linker has it; NULL: not known */
	const char *file;     /* NULL: not known */
	unsigned line;
	bool is_inlined; /* into the next one */
	bool is_cpp;
	enum tm_symbols_from from;
};

struct tm_symbols_module {
	const char *path;
	const uint8_t *build_id;
	size_t build_id_bytes; /* 0: not known, the path is believed */
};

struct tm_symbols;

bool tm_symbols_are_built(void);

/* "debug_dir", NULL or a folder that is looked into before the usual ones. NULL without memory. */
struct tm_symbols *tm_symbols_new(const char *debug_dir);
void tm_symbols_free(struct tm_symbols *symbols);

/*
 * The functions at an address of a module (as its file has it: address in memory less the load
 * bias), the innermost inlined one first, the real one last. Returns how many of "room" were filled;
 * texts live as long as "symbols".
 */
size_t tm_symbols_find(struct tm_symbols *symbols, const struct tm_symbols_module *module,
		       uint64_t address, struct tm_symbol *ret_symbols, size_t room);

/* The variable that holds an address, by the size that .symtab gives it; NULL: none is known to. */
const char *tm_symbols_variable(struct tm_symbols *symbols, const struct tm_symbols_module *module,
				uint64_t address, uint64_t *ret_offset);

/* How a module fared: "debug", "symtab", "dynsym only", "not found", "another build-id". */
const char *tm_symbols_state(struct tm_symbols *symbols, const struct tm_symbols_module *module);

#endif
