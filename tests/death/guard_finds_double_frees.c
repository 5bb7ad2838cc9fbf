/* SPDX-License-Identifier: MIT */
/* env: TIERMALLOC_GUARD=all TIERMALLOC_ON_ERROR=abort */
/* dies: SIGABRT */
/* stderr: tiermalloc: free of a block that is free: 0x[0-9a-f]+ */
/* A second free, with others between that would have got the memory. */
#include <stdlib.h>
#include <string.h>

static char *hide(char *p)
{
	__asm__ volatile("" : "+r"(p) : : "memory");
	return p;
}

int main(void)
{
	char *p = malloc(100);

	free(p);
	for (int i = 0; i < 100; i++)
		free(hide(malloc(100)));
	free(hide(p));
	return 0;
}
