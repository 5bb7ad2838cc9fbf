/* SPDX-License-Identifier: MIT */
/*
 * Log 65: two models of 400 MiB with different mixes of block sizes are loaded in turn, a few
 * small objects of each staying alive; the peak is little above one model.
 * Failure: what one model freed does not serve the other, and resident memory approaches the sum.
 */
#include "probe.h"

enum { BLOCKS = 6000, MODEL = 400 << 20, SWITCHES = 6 };

static size_t load(unsigned char **block, uint64_t seed, size_t most)
{
	size_t n = 0;

	for (size_t bytes = 0; bytes < MODEL && n < BLOCKS; n++) {
		size_t size = 1000 + probe_random(&seed) % most;
		block[n] = malloc(size);
		probe_require(block[n] != NULL, "malloc is NULL");
		memset(block[n], 1, size);
		bytes += size;
	}
	return n;
}

int main(void)
{
	static unsigned char *block[BLOCKS];
	static void *kept[SWITCHES * 64];
	size_t most = 0;

	probe_limit();
	for (size_t i = 0; i < SWITCHES; i++) {
		size_t n = load(block, i + 1, i % 2 ? 160000 : 9 * MIB);
		for (size_t k = 0; k < 64; k++)
			kept[i * 64 + k] = malloc(300);
		size_t rss = probe_rss_anon(0);
		most = rss > most ? rss : most;
		while (n-- > 0)
			free(block[n]);
	}
	probe_require(most < (size_t)MODEL * 5 / 4, "%zu MiB resident for a model of %d",
		      most / MIB, MODEL >> 20);
	return kept[0] == NULL;
}
