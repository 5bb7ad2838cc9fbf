/* SPDX-License-Identifier: MIT */
/*
 * symbols: functions and lines of addresses, from files alone. A module's file is identified by its
 * build id: the path it was loaded from, if that still has the same id, else a debug file. Names
 * come from DWARF or .symtab, never from the nearest dynamic symbol, which is a guess: then there
 * is no name, and the caller prints module+0xoffset.
 *
 * Needs elfutils (--with-libdw); without it every look-up finds nothing. One thread.
 */
#ifndef TM_TOOLS_SYMBOLS_H
#define TM_TOOLS_SYMBOLS_H

#include "shim/base/attrs.h"

enum tm_symbols_from { TM_SYMBOLS_NONE, TM_SYMBOLS_SYMTAB, TM_SYMBOLS_DEBUG };

struct tm_symbol {
	const char *function; /* demangled; NULL: not known */
	const char *raw;      /* linkage name; NULL: not known */
	const char *file;     /* NULL: not known */
	unsigned line;
	bool is_inlined; /* inlined into the next one */
	bool is_cpp;
	enum tm_symbols_from from;
};

struct tm_symbols_module {
	const char *path;
	const uint8_t *build_id;
	size_t build_id_bytes; /* 0: unknown; the path is trusted */
};

struct tm_symbols;

bool tm_symbols_are_built(void);

/* debug_dir: a directory searched before the usual ones, or NULL. Returns NULL without memory. */
struct tm_symbols *tm_symbols_new(const char *debug_dir);
void tm_symbols_free(struct tm_symbols *symbols);

/*
 * Finds the functions at an address of a module, relative to its load bias, as in its file: the
 * innermost inlined function first, the real one last. Returns how many of "room" entries were
 * filled; texts live as long as "symbols".
 */
size_t tm_symbols_find(struct tm_symbols *symbols, const struct tm_symbols_module *module,
		       uint64_t address, struct tm_symbol *ret_symbols, size_t room);

/* The variable whose size in .symtab covers an address; NULL: none is known. */
const char *tm_symbols_variable(struct tm_symbols *symbols, const struct tm_symbols_module *module,
				uint64_t address, uint64_t *ret_offset);

/*
 * State of a module's symbols: "debug", "symtab", "dynsym only", "not found", "another build-id".
 */
const char *tm_symbols_state(struct tm_symbols *symbols, const struct tm_symbols_module *module);

#endif
