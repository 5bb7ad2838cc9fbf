/* SPDX-License-Identifier: MIT */
/*
 * H58: a program takes a table of 1 GiB by calloc and touches 64 places of it: 256 KiB with small
 * pages, 128 MiB where each touch brings a huge page. Huge pages are for memory that is about to
 * be filled, and nothing says so here.
 * Failure: the sparse table is resident at hundreds of times its use (mimalloc and tcmalloc zero
 * all of it).
 */
#include "probe.h"

int main(void)
{
	size_t before = probe_rss_anon(0);
	unsigned char *table = calloc(1, GIB);

	probe_limit();
	probe_require(table != NULL, "calloc is NULL");
	for (size_t i = 0; i < 64; i++)
		table[i * 16 * MIB] = 1;
	size_t rss = probe_rss_anon(0) - before;
	probe_require(rss < 16 * MIB, "%zu MiB resident for 64 touches", rss / MIB);
	free(table);
	return 0;
}
