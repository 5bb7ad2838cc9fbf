/* SPDX-License-Identifier: MIT */
/* A plug-in whose constructor, destructor and thread-local data use the heap. */
#include "tests/preload/probe.h"

static void *kept[32];
static __thread char state[300];
int stress_plugin_use(void);

__attribute__((constructor)) static void load(void)
{
	for (size_t i = 0; i < 32; i++)
		kept[i] = calloc(1, 1 + i * i * 40);
}

__attribute__((destructor)) static void unload(void)
{
	for (size_t i = 0; i < 32; i++)
		free(kept[i]);
}

int stress_plugin_use(void)
{
	state[299]++;
	return kept[31] != NULL;
}
