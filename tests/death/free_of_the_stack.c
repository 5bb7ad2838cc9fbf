/* SPDX-License-Identifier: MIT */
/* env: TIERMALLOC_ON_ERROR=abort */
/* dies: SIGABRT */
/* stderr: tiermalloc: free of an address that was never allocated: 0x[0-9a-f]+ */
/* H20: free of a local variable. */
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
	char local[256];

	memset(local, 0, sizeof(local));
	free(hide(local + 64));
	return 0;
}
