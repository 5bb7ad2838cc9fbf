/* SPDX-License-Identifier: MIT */
/*
 * After a device fault everything in the context fails with that fault: a pool that went on serving
 * would hide it.
 */
/* libs: libcuda.so.1 */
/* preload: none */
#include "tests/cuda/modes.h"

static void body(const char *mode)
{
	CUcontext ctx = claim_context();
	CUdeviceptr p, q, r;
	int i;
	ok(cuMemAlloc_v2(&p, 4 * MIB));
	ok(cuMemAlloc_v2(&q, 4 * MIB));
	ok(cuMemFree_v2(q));
	tmfake_break(ctx, CUDA_ERROR_ILLEGAL_ADDRESS);
	gives(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
	/* A free that waits is told; by event the driver is asked once for many frees. */
	if (strstr(mode, "-event") == NULL)
		claim(cuMemFree_v2(p) == CUDA_ERROR_ILLEGAL_ADDRESS, "%s", mode);
	for (i = 0; i < 80; i++)
		if (cuMemAlloc_v2(&r, 4 * MIB) != CUDA_SUCCESS || cuMemFree_v2(r) != CUDA_SUCCESS)
			break;
	claim(i < (strstr(mode, "-event") ? 80 : 1), "%s: served %d times", mode, i);
	claim(cuMemAlloc_v2(&r, 4 * MIB) == CUDA_ERROR_ILLEGAL_ADDRESS, "%s", mode);
	claim(cuMemAlloc_v2(&r, 8 * MIB) == CUDA_ERROR_ILLEGAL_ADDRESS, "%s", mode);
	ok(cuDevicePrimaryCtxReset_v2(0));
	ctx = claim_context();
	ok(cuMemAlloc_v2(&r, 4 * MIB));
	ok(cuMemFree_v2(r));
	/* A fault of work in progress: the free that waits for it says so, or a later call does. */
	ok(cuMemAlloc_v2(&r, 4 * MIB));
	ok(tmfake_fill(NULL, 0x123450000, 1, 4, 5 * MS));
	CUresult rc = cuMemFree_v2(r);
	if (strstr(mode, "-event") == NULL)
		claim(rc == CUDA_ERROR_ILLEGAL_ADDRESS, "%s: %d", mode, rc);
	claim(cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS, "%s", mode);
}

int main(int argc, char **argv)
{
	return modes_run(argc, argv, body, MODES_ALL);
}
