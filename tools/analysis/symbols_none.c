/* SPDX-License-Identifier: MIT */
/* symbols: implementation without elfutils: addresses stay module+0xoffset. See symbols.h. */
#include <stdlib.h>

#include "tools/analysis/symbols.h"

bool tm_symbols_are_built(void)
{
	return false;
}

struct tm_symbols *tm_symbols_new(const char *debug_dir)
{
	(void)debug_dir;
	return malloc(1);
}

void tm_symbols_free(struct tm_symbols *symbols)
{
	free(symbols);
}

size_t tm_symbols_find(struct tm_symbols *symbols, const struct tm_symbols_module *module,
		       uint64_t address, struct tm_symbol *ret_symbols, size_t room)
{
	(void)symbols;
	(void)module;
	(void)address;
	(void)ret_symbols;
	(void)room;
	return 0;
}

const char *tm_symbols_variable(struct tm_symbols *symbols, const struct tm_symbols_module *module,
				uint64_t address, uint64_t *ret_offset)
{
	(void)symbols;
	(void)module;
	(void)address;
	(void)ret_offset;
	return NULL;
}

const char *tm_symbols_state(struct tm_symbols *symbols, const struct tm_symbols_module *module)
{
	(void)symbols;
	(void)module;
	return "built without libdw";
}
