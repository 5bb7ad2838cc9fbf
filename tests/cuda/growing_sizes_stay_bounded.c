/* SPDX-License-Identifier: MIT */
/*
 * Buffers that grow by a little each time fit no cached block: a pool that kept them all would hold
 * the sum (llama.cpp#22107, #22075), one that reserved addresses for each would run out of them
 * (pytorch#186213). 2000 steps; what the device holds at the end is near what it held half-way.
 */
/* libs: libcuda.so.1 */
/* preload: none */
/* env: TMFAKE_CAPACITY=4G TMFAKE_VA=16G */
#include "tests/cuda/modes.h"

static void body(const char *mode)
{
	CUdeviceptr p = 0, next;
	size_t bytes = 8 * MIB, half = 0, step;
	claim_context();
	for (step = 0; step < 2000; step++) {
		bytes += step % 4 ? 256 : 64 << 10;
		ok(cuMemAlloc_v2(&next, bytes));
		ok(tmfake_fill(NULL, next, 1, 4, 10000));
		if (p != 0)
			ok(cuMemFree_v2(p));
		p = next;
		tmfake_advance(MS);
		if (step == 1000)
			half = tmfake_peak(0);
	}
	printf("%s: %zu MiB live, peak half-way %zu, at the end %zu, driver calls %llu\n", mode,
	       bytes / MIB, half / MIB, (size_t)tmfake_peak(0) / MIB,
	       (unsigned long long)tmfake_calls("cuMemAlloc_v2"));
	claim(tmfake_peak(0) <= half + 96 * MIB, "%s: from %zu to %zu MiB", mode, half / MIB,
	      (size_t)tmfake_peak(0) / MIB);
	claim(tmfake_peak(0) <= 640 * MIB);
	ok(cuMemFree_v2(p));
}

int main(int argc, char **argv)
{
	return modes_run(argc, argv, body, MODES_ALL);
}
