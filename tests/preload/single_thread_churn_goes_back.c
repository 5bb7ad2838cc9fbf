/* SPDX-License-Identifier: MIT */
/*
 * Log 69, 4.2: four rounds of a mixed-lifetime load, small to 300 KB, peak about 250 MiB, of which
 * one block in 400 stays. The idle process holds little more than these.
 * Failure: the heap cannot shrink below its highest live block (glibc).
 */
#include "probe.h"

enum { BLOCKS = 40000 };

int main(void)
{
	static unsigned char *block[BLOCKS], *kept[4 * BLOCKS / 400];
	uint64_t seed = 69;
	size_t n = 0, live = 0;

	probe_limit();
	for (int round = 0; round < 4; round++) {
		for (size_t i = 0; i < BLOCKS; i++) {
			size_t bytes = 16 + probe_random(&seed) % (i % 50 ? 2000 : 300000);
			block[i] = malloc(bytes);
			probe_require(block[i] != NULL, "malloc is NULL");
			memset(block[i], 1, bytes);
			if (i % 400 == 17) {
				live += bytes;
				kept[n++] = block[i];
				block[i] = NULL;
			}
		}
		for (size_t i = 0; i < BLOCKS; i++)
			free(block[(i * 7919) % BLOCKS]);
	}
	/* what one survivor may pin, and the two lists */
	size_t most = live + n * 64 * KIB + 8 * MIB, rss = probe_wait_rss(0, most);
	probe_require(rss <= most, "%zu MiB stay for %zu KiB live in %zu blocks", rss / MIB,
		      live / KIB, n);
	while (n-- > 0)
		free(kept[n]);
	return 0;
}
