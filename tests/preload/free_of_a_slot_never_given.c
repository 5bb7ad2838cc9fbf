/* SPDX-License-Identifier: MIT */
/*
 * H20: a free of an address beside a block, where another block of the same size could lie but none
 * was ever given, is counted and ignored, or the place is given once: no two blocks overlap later.
 */
#include "claim.h"

#define BLOCKS 20000

static int by_address(const void *a, const void *b)
{
	uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;

	return (x > y) - (x < y);
}

static void around(size_t size, long distance)
{
	static uintptr_t block[BLOCKS + 400];
	size_t n = 0;
	char *first = malloc(size);

	block[n++] = (uintptr_t)first;
	for (long i = 1; i <= 200; i++)
		free(claim_hide(first + i * distance * (long)size));
	/* Some are taken at once, while more of the span was never touched; the rest follows. */
	for (int i = 0; i < BLOCKS; i++) {
		block[n] = (uintptr_t)malloc(size);
		memset((void *)block[n], 0x5a, size);
		n++;
	}
	qsort(block, n, sizeof(block[0]), by_address);
	for (size_t i = 1; i < n; i++)
		claim(block[i] - block[i - 1] >= size, "two blocks of %zu at %#lx", size,
		      (unsigned long)block[i]);
}

int main(void)
{
	/* Sizes that nothing else uses, so that the first block is the first of its kind. */
	around(992, -1);
	around(976, 1);
	around(208, -1);
	around(48, -3);
	around(2048, -1);
	around(5120, -1);
	return claim_end();
}
