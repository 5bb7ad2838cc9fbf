/* SPDX-License-Identifier: MIT */
/*
 * Memory that a pool keeps is given to whoever needs it before an allocation fails, memory in use by
 * work in progress too (pytorch#189504); growth takes what is needed, not twice that (rmm#496); the
 * last error is the driver's own. All ways to allocate are helped.
 */
/* libs: libcuda.so.1 */
/* preload: none */
/* env: TMFAKE_CAPACITY=256M */
#include "tests/cuda/modes.h"

static CUstream s;

static void fill_and_free(size_t mib, int count, uint64_t work)
{
	CUdeviceptr p[64];
	int i;
	for (i = 0; i < count; i++) {
		ok(cuMemAlloc_v2(&p[i], mib * MIB));
		if (work)
			ok(tmfake_fill(s, p[i], 3, 4, work));
	}
	for (i = 0; i < count; i++)
		ok(cuMemFree_v2(p[i]));
}

static void body(const char *mode)
{
	CUmemAllocationProp prop = {.type = 1, .location = {1, 0}};
	CUDA_ARRAY_DESCRIPTOR shape = {65536, 1024, 1, 1};
	CUmemGenericAllocationHandle handle;
	CUdeviceptr p, q[16];
	CUarray array;
	size_t pitch;
	int i;
	(void)mode;
	claim_context();
	ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	/* One block that nearly fills the device is still being written when it is freed. */
	ok(cuMemAlloc_v2(&p, 240 * MIB));
	ok(tmfake_fill(s, p, 3, 4, 30 * MS));
	ok(cuMemFree_v2(p));
	ok(cuMemAlloc_v2(&p, 240 * MIB));
	ok(cuMemFree_v2(p));
	/* Many small ones, then large ones of every kind. */
	for (i = 0; i < 4; i++) {
		fill_and_free(4, 60, i % 2 ? 2 * MS : 0);
		ok(cuMemAlloc_v2(&p, (size_t)(200 + i) * MIB));
		ok(cuMemFree_v2(p));
	}
	fill_and_free(4, 60, 1 * MS);
	ok(cuMemAllocPitch_v2(&p, &pitch, 1 * MIB, 200, 4));
	ok(cuMemFree_v2(p));
	fill_and_free(4, 60, 1 * MS);
	ok(cuMemAllocAsync(&p, 200 * MIB, s));
	ok(cuMemFree_v2(p));
	ok(cuCtxSynchronize());
	fill_and_free(4, 60, 1 * MS);
	ok(cuMemCreate(&handle, 200 * MIB, &prop, 0));
	ok(cuMemRelease(handle));
	fill_and_free(4, 60, 1 * MS);
	ok(cuArrayCreate_v2(&array, &shape));
	ok(cuArrayDestroy(array));
	/* Step by step to the last page. */
	for (i = 0; i < 6; i++)
		ok(cuMemAlloc_v2(&q[i], 40 * MIB));
	gives(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(&p, 40 * MIB));
	ok(tmfake_fail("cuMemAlloc_v2", 1, CUDA_ERROR_UNKNOWN));
	CUresult rc = cuMemAlloc_v2(&p, 14 * MIB);
	claim(rc == CUDA_ERROR_UNKNOWN || rc == CUDA_SUCCESS, "%d", rc);
	if (rc == CUDA_SUCCESS)
		ok(cuMemFree_v2(p));
	for (i = 0; i < 6; i++)
		ok(cuMemFree_v2(q[i]));
	ok(cuMemAlloc_v2(&p, 250 * MIB));
	ok(cuMemFree_v2(p));
	claim(tmfake_misuse() == 0);
}

int main(int argc, char **argv)
{
	return modes_run(argc, argv, body, MODES_ALL);
}
