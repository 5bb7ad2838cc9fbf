/* SPDX-License-Identifier: MIT */
/* env: TIERMALLOC_GUARD=sample=1 */
/* dies: SIGSEGV */
/* A freed sampled block cannot be read. */
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
	return hide(p)[50];
	return 0;
}
