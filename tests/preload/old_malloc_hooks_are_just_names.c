/* SPDX-License-Identifier: MIT */
/* build: -rdynamic */
/*
 * H41: a program that still defines __malloc_hook and its relatives as variables of its own keeps
 * them to itself: nobody calls or changes them. Failure: a hook is called, or the link fails.
 */
#include "claim.h"

static int called;

static void *hook(size_t size, const void *caller)
{
	(void)size, (void)caller;
	called++;
	return NULL;
}

void *(*volatile __malloc_hook)(size_t, const void *) = hook;
void (*volatile __free_hook)(void *, const void *);
void *(*volatile __realloc_hook)(void *, size_t, const void *);
void *(*volatile __memalign_hook)(size_t, size_t, const void *);
void (*volatile __malloc_initialize_hook)(void);
void (*volatile __after_morecore_hook)(void);
void *(*__morecore)(ptrdiff_t);

int main(void)
{
	for (size_t i = 1; i < 1000; i++) {
		char *p = malloc(i);
		claim(p, "malloc(%zu)", i);
		free(realloc(p, i * 100));
	}
	claim(!called && __malloc_hook == hook && !__free_hook && !__realloc_hook,
	      "a hook was touched");
	return claim_end();
}
