/* SPDX-License-Identifier: MIT */
/* env: TIERMALLOC_ON_ERROR=abort */
/* dies: SIGABRT */
/* stderr: tiermalloc: free of an address that was never allocated: 0x[0-9a-f]+ */
/* H20: free of a static variable ends the program where that was asked for. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

static void *hide(void *p)
{
	__asm__ volatile("" : "+r"(p) : : "memory");
	return p;
}

static char variable[64];

int main(void)
{
	free(malloc(10));
	free(hide(variable + 16));
	return 0;
}
