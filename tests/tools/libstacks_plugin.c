/* SPDX-License-Identifier: MIT */
/* A library that stacks_subject unloads again. */
#include <stdlib.h>

void *plugin_allocates(size_t size);

__attribute__((noinline)) void *plugin_allocates(size_t size)
{
	void *volatile p = malloc(size);

	return p;
}
