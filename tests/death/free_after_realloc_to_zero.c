/* SPDX-License-Identifier: MIT */
/* env: TIERMALLOC_ON_ERROR=abort */
/* dies: SIGABRT */
/* stderr: tiermalloc: free of a block that is free: 0x[0-9a-f]+ */
/* H34: realloc(p, 0) has freed p; the old idiom that frees it again is a double free. */
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
	void *p = malloc(100), *kept = hide(p);

	if (realloc(p, 0))
		return 1;
	free(kept);
	return 0;
}
