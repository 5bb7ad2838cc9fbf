/* SPDX-License-Identifier: MIT */
/* env: TIERMALLOC_GUARD=sample=1 */
/* dies: SIGSEGV */
/* A sampled block ends at a page that nobody may touch. */
#include <stdlib.h>
#include <string.h>

static char *hide(char *p)
{
	__asm__ volatile("" : "+r"(p) : : "memory");
	return p;
}

int main(void)
{
	char *p = malloc(4096);

	hide(p)[4096] = 1;
	return 0;
}
