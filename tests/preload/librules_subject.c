/* SPDX-License-Identifier: MIT */
/* A library whose calls a rule names by its file. */
#include <stdlib.h>

void *rules_subject(size_t size);

void *rules_subject(size_t size)
{
	void *p = malloc(size);

	__asm__ volatile("" ::"r"(p) : "memory");
	return p;
}
