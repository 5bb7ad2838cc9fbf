/* SPDX-License-Identifier: MIT */
/* cross: yes */
/*
 * H40, log 37: malloc_usable_size stays the same for the block's life, all of it may be written
 * and is copied by realloc; NULL gives 0. Failure: a changing size, a neighbour overwritten, or
 * slack that realloc does not copy (systemd kept its data there).
 */
#include "claim.h"

#include <malloc.h>

enum { BLOCKS = 20000 };

static unsigned char *block[BLOCKS];
static size_t usable[BLOCKS];
static uint64_t seed = 42;

static size_t draw(size_t below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (size_t)(seed >> 33) % below;
}

static void check(size_t i, size_t upto)
{
	unsigned char want = (unsigned char)(i * 7 + 1);

	for (size_t j = 0; j < upto; j += j + 600 < upto ? 509 : 1)
		if (block[i][j] != want) {
			claim(false, "block %zu: byte %zu of %zu changed", i, j, upto);
			return;
		}
}

static void round_of(size_t i)
{
	claim(malloc_usable_size(block[i]) == usable[i], "block %zu: %zu, now %zu", i, usable[i],
	      malloc_usable_size(block[i]));
	check(i, usable[i]);
	size_t size = draw(8) ? usable[i] + draw(64) : draw(usable[i] + 1) + 1;
	unsigned char *p = realloc(block[i], size);
	claim(p, "realloc(%zu)", size);
	if (!p)
		return;
	block[i] = p;
	check(i, size < usable[i] ? size : usable[i]);
	usable[i] = malloc_usable_size(p);
	memset(p, (int)(i * 7 + 1), usable[i]);
}

int main(void)
{
	claim(malloc_usable_size(NULL) == 0, "NULL");
	for (size_t i = 0; i < BLOCKS; i++) {
		size_t size = draw(100) ? draw(2000) : draw(200000);
		block[i] = malloc(size);
		usable[i] = malloc_usable_size(block[i]);
		claim(usable[i] >= size, "malloc(%zu): usable %zu", size, usable[i]);
		memset(block[i], (int)(i * 7 + 1), usable[i]);
	}
	for (size_t i = 0; i < 4 * BLOCKS; i++)
		round_of(draw(BLOCKS));
	for (size_t i = 0; i < BLOCKS; i++) {
		claim(malloc_usable_size(block[i]) == usable[i], "block %zu at the end", i);
		check(i, usable[i]);
		free(block[i]);
	}
	return claim_end();
}
