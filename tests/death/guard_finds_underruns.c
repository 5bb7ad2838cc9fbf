/* SPDX-License-Identifier: MIT */
/* env: TIERMALLOC_GUARD=all TIERMALLOC_ON_ERROR=abort */
/* dies: SIGABRT */
/* stderr: tiermalloc: written in front of the beginning: a block of 100 bytes at 0x[0-9a-f]+ */
/* A word in front of a block is found by its free. */
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

	memset(hide(p) - 16, 1, 8);
	free(p);
	return 0;
}
