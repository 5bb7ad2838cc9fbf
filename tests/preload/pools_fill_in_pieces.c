/* SPDX-License-Identifier: MIT */
/*
 * Where there is no helper each request of a pool's size makes at most a huge page of the pool
 * resident, until all of it is. Failure: more in one request, or less in the end.
 */
/* env: TIERMALLOC_POOLS=768K*32@session,5M*4 TIERMALLOC_THREAD=never TIERMALLOC_LEDGER=off TIERMALLOC_REPORT=exit */
/* stderr: .* *session +768 KiB +32 +80 +0 +0 +1 */
/* stderr: .* *any tier +5\.0 MiB +4 +60 +0 +0 +1 */
#include "probe.h"

static void visit(size_t bytes, int count, size_t all)
{
	size_t first = probe_rss_anon(0), before = first, now;

	for (int i = 0; i < count; i++) {
		void *p = malloc(bytes);

		probe_require(p != NULL, "malloc is NULL");
		now = probe_rss_anon(0);
		/* a huge page, and tables */
		probe_require(now <= before + 2 * MIB + MIB / 4, "request %d: %zu after %zu", i,
			      now, before);
		before = now;
		free(p);
	}
	probe_require(before >= first + all, "%zu after %zu: not filled", before, first);
}

int main(void)
{
	probe_limit();
	visit(768 * KIB, 80, 32 * 768 * KIB);
	visit(5 * MIB, 60, 4 * 5 * MIB);
	return 0;
}
