/* SPDX-License-Identifier: MIT */
/*
 * Programs rely on cudaFree waiting for the device (kokkos#9307, thrust#1276). It does, at most one
 * wait a free; by event it returns at once and the memory rests until the device is done with it.
 */
/* libs: libcuda.so.1 */
/* preload: none */
#include "tests/cuda/modes.h"

static void body(const char *mode)
{
	bool event = strstr(mode, "-event") != NULL;
	CUdeviceptr p[20], q;
	CUstream s;
	uint64_t syncs, before;
	int i;
	claim_context();
	ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	for (i = 0; i < 20; i++)
		ok(cuMemAlloc_v2(&p[i], 3 * MIB));
	syncs = tmfake_calls("cuCtxSynchronize");
	for (i = 0; i < 20; i++) {
		ok(tmfake_fill(s, p[i], 3, 4, 20 * MS));
		before = tmfake_now();
		ok(cuMemFree_v2(p[i]));
		if (!event)
			claim(tmfake_pending() == 0, "%s: work goes on after free %d", mode, i);
		else if (modes_is(mode, "cache") || modes_is(mode, "slab") || modes_is(mode, "vmm"))
			claim(tmfake_now() - before < 10 * MS, "%s: free %d waited %llu us", mode,
			      i, (unsigned long long)(tmfake_now() - before) / 1000);
	}
	syncs = tmfake_calls("cuCtxSynchronize") - syncs;
	claim(syncs <= 20, "%s: %llu waits for 20 frees", mode, (unsigned long long)syncs);
	if (event)
		claim(syncs == 0, "%s: %llu waits", mode, (unsigned long long)syncs);
	ok(cuMemAlloc_v2(&q, 3 * MIB));
	ok(cuMemFree_v2(q));
}

int main(int argc, char **argv)
{
	return modes_run(argc, argv, body, MODES_ALL);
}
