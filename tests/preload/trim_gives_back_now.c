/* SPDX-License-Identifier: MIT */
/* cross: yes */
/*
 * H42, H57: malloc_trim(0) gives free memory back at once and says 1; a second one with nothing
 * left says 0. What went back has left the resident set (not MADV_FREE: LazyFree stays 0), and
 * live blocks between the freed ones keep their content.
 * Failure: memory stays (every preloaded rival: the call reaches libc's empty heap).
 */
/* env: TIERMALLOC_GIVEBACK=off */
#include "probe.h"
#include <malloc.h>

enum { BLOCKS = 60000, LARGE = 40 };

int main(void)
{
	static unsigned char *small[BLOCKS], *large[LARGE];

	probe_limit();
	for (size_t i = 0; i < LARGE; i++) {
		large[i] = malloc(3 * MIB + i * 10000);
		memset(large[i], 1, 3 * MIB + i * 10000);
	}
	for (size_t i = 0; i < BLOCKS; i++) {
		size_t bytes = 100 + i % 4000;
		small[i] = malloc(bytes);
		probe_fill(small[i], bytes, i);
	}
	for (size_t i = 0; i < LARGE; i++)
		free(large[i]);
	for (size_t i = 0; i < BLOCKS; i++)
		if (i % 1000 != 0)
			free(small[i]);
	int said = malloc_trim(0);
	size_t rss = probe_rss_anon(0);
	probe_require(said == 1, "malloc_trim said %d", said);
	probe_require(rss < 40 * MIB, "%zu MiB are still held", rss / MIB);
	long lazy = probe_field("/proc/self/smaps_rollup", "LazyFree");
	probe_require(lazy <= 0, "%ld KiB are only marked as free", lazy);
	for (size_t i = 0; i < BLOCKS; i += 1000) {
		probe_require(probe_filled(small[i], 100 + i % 4000, i), "a live block changed");
		free(small[i]);
	}
	malloc_trim(0);
	probe_require(malloc_trim(0) == 0, "malloc_trim with nothing to give back is not 0");
	return 0;
}
