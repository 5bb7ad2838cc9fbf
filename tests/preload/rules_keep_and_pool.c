/* SPDX-License-Identifier: MIT */
/*
 * A rule's pool= makes a filled pool for the sizes that it matches, keep= holds what was freed, and a
 * rule's tier is stronger than a list's. Without a ledger, whose samples have page faults of their own.
 * Failure: memory that went back, counts in the report.
 */
/* env: TIERMALLOC_RULES='size=1M -> tier=session pool=4; size=2M -> keep=8M; size=200000 -> tier=temporary; size<=4K -> pool=3' TIERMALLOC_POOLS=200000*4@session,200000*8 TIERMALLOC_SESSION_DECAY=100ms TIERMALLOC_LEDGER=off TIERMALLOC_REPORT=exit */
/* stderr: tiermalloc: TIERMALLOC_RULES:4: pool and keep have no effect up to 64K, use TIERMALLOC_POOLS */
/* stderr: tiermalloc: TIERMALLOC_POOLS: no pool for '200000\*8': there is one of that size, or of its class of slots */
/* stderr: .* *session +1\.0 MiB +4 +4 +0 +1 +4 */
/* stderr: .* *any tier +2\.0 MiB +4 +4 +5 +0 +5 */
/* stderr: .* *session +195 KiB +4 +0 +1 +0 +0 */
#include "probe.h"

int main(void)
{
	void *p[5];
	size_t rss;

	probe_limit();
	p[0] = malloc(200000);
	memset(p[0], 1, 100);
	free(p[0]);

	for (int i = 0; i < 5; i++)
		p[i] = malloc(MIB);
	for (int i = 0; i < 5; i++)
		free(p[i]);

	for (int i = 0; i < 5; i++) {
		p[i] = malloc(2 * MIB);
		memset(p[i], 1, 2 * MIB);
	}
	for (int i = 0; i < 5; i++)
		free(p[i]);
	rss = probe_wait_rss(0, 15 * MIB);
	probe_require(rss < 15 * MIB, "more is kept than was asked for: %zu", rss);
	probe_require(rss >= 10 * MIB, "not kept: %zu", rss);
	long faults = probe_minor_faults();
	for (int i = 0; i < 4; i++) {
		p[i] = malloc(2 * MIB);
		memset(p[i], 1, 2 * MIB);
	}
	probe_require(probe_minor_faults() - faults < 8, "%ld faults",
		      probe_minor_faults() - faults);
	for (int i = 0; i < 4; i++)
		free(p[i]);
	return 0;
}
