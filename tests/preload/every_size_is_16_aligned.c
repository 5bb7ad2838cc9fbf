/* SPDX-License-Identifier: MIT */
/*
 * H31, log 39 40: every block of 1 to 4096 bytes is aligned to 16, 64 of each at once, from
 * malloc, calloc and realloc. Failure: an 8-byte block at an odd multiple of 8, on which a
 * compiler's movaps faults (jemalloc, tcmalloc and mimalloc give such).
 */
#include "claim.h"

#include <emmintrin.h>

enum { EACH = 64, GREATEST = 4096 };

static void *blocks[3][EACH];

/* What the compiler may do with any block of at least 16 bytes: an aligned store. */
__attribute__((noinline)) static void store_whole(void *p)
{
	_mm_store_si128((__m128i *)p, _mm_set1_epi8(3));
}

int main(void)
{
	for (size_t size = 1; size <= GREATEST; size++) {
		for (size_t i = 0; i < EACH; i++) {
			blocks[0][i] = malloc(size);
			blocks[1][i] = calloc(1, size);
			blocks[2][i] = realloc(malloc(size / 2 + 1), size);
		}
		for (size_t i = 0; i < 3 * EACH; i++) {
			void *p = blocks[i / EACH][i % EACH];
			claim(p && (uintptr_t)p % 16 == 0, "size %zu: %p", size, p);
			if (size >= 16 && (uintptr_t)p % 16 == 0)
				store_whole(p);
			free(p);
		}
	}
	return claim_end();
}
