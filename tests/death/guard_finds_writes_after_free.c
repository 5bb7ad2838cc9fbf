/* SPDX-License-Identifier: MIT */
/* env: TIERMALLOC_GUARD=all TIERMALLOC_ON_ERROR=abort */
/* dies: SIGABRT */
/* stderr: tiermalloc: written after its free: a block of 100 bytes at 0x[0-9a-f]+ */
/* A write after the free is found when the quarantine is left, at the latest at the end of main. */
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
	hide(p)[50]++;
	return 0;
}
