/* SPDX-License-Identifier: MIT */
/*
 * TIERMALLOC_FILL: new blocks hold one byte, freed ones another, whatever their size and whoever gave
 * them; calloc stays zero and realloc keeps its content. Failure: another byte.
 */
/* env: TIERMALLOC_FILL=alloc=0xa5,free=0x5a */
#include "probe.h"

static void is_all(const unsigned char *p, size_t from, size_t to, int byte)
{
	for (size_t i = from; i < to; i++)
		probe_require(p[i] == byte, "byte %zu is %x, not %x", i, p[i], (unsigned)byte);
}

int main(void)
{
	static const size_t sizes[] = {1, 24, 1000, 5000, 65536, 100000, 3000000};
	void *aligned;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t bytes = sizes[i];
		unsigned char *p = malloc(bytes);
		/* the list of free slots takes a word at each end, and the first pages may go back */
		size_t words = 16;

		is_all(p, 0, bytes, 0xa5);
		p[0] = 7;
		p = realloc(p, bytes + 9);
		probe_require(p[0] == 7, "realloc lost its content");
		is_all(p, bytes, bytes + 9, 0xa5);
		free(p);
		__asm__ volatile("" : "+r"(p) : : "memory");
		if (bytes > 2 * words)
			is_all(p, words, bytes, 0x5a);
		p = calloc(1, bytes);
		is_all(p, 0, bytes, 0);
		free(p);
		probe_require(posix_memalign(&aligned, 256, bytes) == 0, "posix_memalign");
		is_all(aligned, 0, bytes, 0xa5);
		free(aligned);
	}
	return 0;
}
