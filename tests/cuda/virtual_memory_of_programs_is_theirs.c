/* SPDX-License-Identifier: MIT */
/*
 * Programs that map memory themselves (expandable segments, ggml's pool, sleep and wake) are served by
 * the driver alone: counts of references, granularity, access, what fails (vllm#36651). Devices without
 * virtual memory or RDMA are not asked for it.
 */
/* libs: libcuda.so.1 */
/* preload: none */
#include "tests/cuda/modes.h"

static void body(const char *mode)
{
	CUmemAllocationProp prop = {.type = 1, .location = {1, 0}}, got;
	CUmemAccessDesc access = {{1, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle h[8], again;
	CUdeviceptr va, p, q;
	size_t grain = 0;
	unsigned long long flags = 0;
	int i, round;
	claim_context();
	ok(cuMemAlloc_v2(&p, 6 * MIB));
	ok(cuMemFree_v2(p));
	ok(cuMemGetAllocationGranularity(&grain, &prop, 0));
	claim(grain == 2 * MIB);
	ok(cuMemAddressReserve(&va, 64 * MIB, 0, 0, 0));
	prop.allocFlags.gpuDirectRDMACapable = 1;
	for (round = 0; round < 3; round++) {
		for (i = 0; i < 8; i++) {
			ok(cuMemCreate(&h[i], 4 * MIB, &prop, 0));
			ok(cuMemMap(va + (CUdeviceptr)i * 4 * MIB, 4 * MIB, 0, h[i], 0));
		}
		ok(cuMemSetAccess(va, 32 * MIB, &access, 1));
		ok(cuMemGetAllocationPropertiesFromHandle(&got, h[3]));
		claim(got.allocFlags.gpuDirectRDMACapable == 1 && got.location.id == 0);
		ok(cuMemGetAccess(&flags, &prop.location, va));
		claim(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
		ok(cuMemsetD32_v2(va, 3, 32 * MIB / 4));
		ok(cuMemAlloc_v2(&q, 6 * MIB));
		ok(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(va + 5 * MIB)));
		claim(again == h[1]);
		ok(cuMemRelease(again));
		ok(cuCtxSynchronize());
		claim(claim_wrong(va, 3, 64) == 0 && claim_wrong(va + 32 * MIB - 256, 3, 64) == 0);
		gives(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(va + 2 * MIB, 4 * MIB));
		for (i = 0; i < 8; i++)
			ok(cuMemRelease(h[i]));
		gives(CUDA_ERROR_INVALID_VALUE, cuMemRelease(h[0]));
		ok(cuMemUnmap(va, 32 * MIB));
		gives(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(va, 32 * MIB));
		gives(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(va));
		ok(cuMemFree_v2(q));
	}
	ok(cuMemAddressFree(va, 64 * MIB));
	ok(cuDevicePrimaryCtxReset_v2(0));
	claim(tmfake_used(0) == 0, "%s: %llu MiB stay", mode,
	      (unsigned long long)tmfake_used(0) / MIB);
}

int main(int argc, char **argv)
{
	return modes_run(argc, argv, body, MODES_ALL);
}
