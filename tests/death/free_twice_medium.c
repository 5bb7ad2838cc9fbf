/* SPDX-License-Identifier: MIT */
/* env: TIERMALLOC_ON_ERROR=abort */
/* dies: SIGABRT */
/* stderr: tiermalloc: free of a block that is free: 0x[0-9a-f]+ */
/* H20: a block of 20000 bytes freed twice. */
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
	char *p = malloc(20000), *q = malloc(20000);

	free(p);
	free(hide(p));
	free(q);
	return 0;
}
