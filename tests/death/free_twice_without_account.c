/* SPDX-License-Identifier: MIT */
/* env: TIERMALLOC_ON_ERROR=abort TIERMALLOC_LEDGER=off */
/* dies: SIGABRT */
/* stderr: tiermalloc: free of a block that is free: 0x[0-9a-f]+ */
/* H20 H34: a small block freed twice, with no account kept. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

static void *hide(void *p)
{
	__asm__ volatile("" : "+r"(p) : : "memory");
	return p;
}

int main(void)
{
	char *p = malloc(100), *q = malloc(100);

	free(p);
	free(q);
	free(hide(p));
	return 0;
}
