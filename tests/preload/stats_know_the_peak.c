/* SPDX-License-Identifier: MIT */
/*
 * tiermalloc_stats tells the largest total there ever was, of all tiers at the same time, whether it
 * came by malloc or by growth in place, and what each tier holds now. Failure: 0, the sum of peaks of
 * tiers that did not meet, an old and a new block counted together.
 */
#include "probe.h"

#include <dlfcn.h>

#include "shim/tiermalloc.h"

static struct tiermalloc_stats now(void)
{
	struct tiermalloc_stats s = {.struct_bytes = sizeof(s)};

	probe_require(tiermalloc_stats(&s) == 0, "no figures");
	for (int i = 1; i < 4; i++)
		probe_require(s.live_bytes[i] <= s.slot_bytes[i], "tier %d lives in less", i);
	probe_require(s.live_bytes[0] == s.live_bytes[1] + s.live_bytes[2] + s.live_bytes[3],
		      "the total is the sum");
	probe_require(s.peak_bytes >= s.live_bytes[0], "a peak below what lives");
	return s;
}

int main(void)
{
	struct tiermalloc_stats a, b;
	char *p;

	if (dlsym(RTLD_DEFAULT, "tiermalloc_stats") == NULL)
		probe_skip("the function is ours");
	a = now();
	for (int tier = TIERMALLOC_PERSISTENT; tier <= TIERMALLOC_TEMPORARY; tier++) {
		p = tiermalloc_alloc(8 * MIB, 16, tier);
		b = now();
		probe_require(b.live_bytes[tier] - a.live_bytes[tier] == 8 * MIB,
			      "tier %d holds %zu", tier, (size_t)b.live_bytes[tier]);
		free(p);
	}
	b = now();
	probe_require(b.peak_bytes >= 8 * MIB && b.peak_bytes < 11 * MIB, "peak %zu",
		      (size_t)b.peak_bytes);
	p = malloc(12 * MIB);
	p = realloc(p, 12 * MIB + 4096);
	p = realloc(p, 12 * MIB + 8192);
	b = now();
	probe_require(b.peak_bytes >= 12 * MIB && b.peak_bytes < 26 * MIB, "peak %zu after growth",
		      (size_t)b.peak_bytes);
	free(p);
	a = now();
	probe_require(a.peak_bytes == b.peak_bytes, "a peak stays");
	return 0;
}
