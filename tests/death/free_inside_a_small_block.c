/* SPDX-License-Identifier: MIT */
/* env: TIERMALLOC_ON_ERROR=abort */
/* dies: SIGABRT */
/* stderr: tiermalloc: free of an address inside a block: 0x[0-9a-f]+ */
/* H20: free of an address inside a live block of a small size. */
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
	char *p = malloc(200);

	free(hide(p + 16));
	free(p);
	return 0;
}
