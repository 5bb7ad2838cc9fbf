/* SPDX-License-Identifier: MIT */
/*
 * Memory of one device is reached from another once access is enabled, whether the block came before
 * or after, from the driver or from a pool (llama.cpp#24491, #4620).
 */
/* libs: libcuda.so.1 */
/* preload: none */
/* env: TMFAKE_DEVICES=2 */
#include "tests/cuda/modes.h"

static void body(const char *mode)
{
	CUcontext zero = claim_context(), one;
	CUdeviceptr before, after, p;
	(void)mode;
	ok(cuDevicePrimaryCtxRetain(&one, 1));
	ok(cuMemAlloc_v2(&p, 6 * MIB));
	ok(cuMemAlloc_v2(&before, 6 * MIB));
	ok(cuMemFree_v2(p));
	ok(cuCtxPushCurrent_v2(one));
	ok(cuCtxEnablePeerAccess(zero, 0));
	ok(cuCtxPopCurrent_v2(NULL));
	ok(cuMemAlloc_v2(&p, 6 * MIB));
	ok(cuMemAlloc_v2(&after, 40 * MIB));
	ok(cuCtxPushCurrent_v2(one));
	ok(tmfake_fill(NULL, before, 5, 2 * MIB / 4 + 1000, 1000));
	ok(tmfake_fill(NULL, after, 6, 4 * MIB / 4, 1000));
	ok(tmfake_fill(NULL, p, 7, 2 * MIB / 4 + 1000, 1000));
	ok(cuCtxSynchronize());
	ok(cuCtxPopCurrent_v2(NULL));
	claim(claim_wrong(before, 5, 2 * MIB / 4 + 1000) == 0 &&
	      claim_wrong(after, 6, 4 * MIB / 4) == 0);
	claim(claim_wrong(p, 7, 2 * MIB / 4 + 1000) == 0);
	/* Work on the other device still runs when the block is freed here: what waits must not forget it. */
	ok(cuMemFree_v2(before));
	ok(cuMemFree_v2(after));
	ok(cuMemFree_v2(p));
	ok(cuCtxSynchronize());
	claim(tmfake_misuse() == 0, "a kernel could not reach it");
}

int main(int argc, char **argv)
{
	return modes_run(argc, argv, body, MODES_ALL);
}
