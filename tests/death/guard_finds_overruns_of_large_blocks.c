/* SPDX-License-Identifier: MIT */
/* env: TIERMALLOC_GUARD=all TIERMALLOC_ON_ERROR=abort */
/* dies: SIGABRT */
/* stderr: tiermalloc: written behind the end: a block of 1000000 bytes at 0x[0-9a-f]+ */
/* The same of whole pages, aligned. */
#include <stdlib.h>
#include <string.h>

static char *hide(char *p)
{
	__asm__ volatile("" : "+r"(p) : : "memory");
	return p;
}

int main(void)
{
	char *p = aligned_alloc(4096, 1000000);

	hide(p)[1000000] = 1;
	free(p);
	return 0;
}
