/* SPDX-License-Identifier: MIT */
/* env: TIERMALLOC_ON_ERROR=abort */
/* dies: SIGABRT */
/* stderr: tiermalloc: free of an address that was never allocated: 0x[0-9a-f]+ */
/* H20: free of memory that mmap gave. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

static void *hide(void *p)
{
	__asm__ volatile("" : "+r"(p) : : "memory");
	return p;
}

#include <sys/mman.h>

int main(void)
{
	void *p = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	free(hide(p));
	return 0;
}
