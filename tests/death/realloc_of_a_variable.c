/* SPDX-License-Identifier: MIT */
/* env: TIERMALLOC_ON_ERROR=abort */
/* dies: SIGABRT */
/* stderr: tiermalloc: free of an address that was never allocated: 0x[0-9a-f]+ */
/* H20: realloc of what malloc never gave. */
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
	return realloc(hide(variable + 16), 100) != NULL;
}
