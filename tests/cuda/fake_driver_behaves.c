/* SPDX-License-Identifier: MIT */
/* The test bed itself: what the other programs rely on holds without the library. */
/* libs: libcuda.so.1 */
/* preload: none */
/* env: TMFAKE_DEVICES=2 TMFAKE_CAPACITY=64M */
#include "tests/cuda/claim.h"

static void free_waits_and_work_comes_late(void)
{
	CUdeviceptr p, q, r;
	size_t available, total;
	ok(cuMemAlloc_v2(&p, 2 * MIB));
	ok(cuMemsetD32_v2(p, 1, 2 * MIB / 4));
	ok(cuCtxSynchronize());
	claim(claim_wrong(p, 1, 2 * MIB / 4) == 0);
	ok(tmfake_fill(NULL, p, 7, 2 * MIB / 4, 20 * MS));
	claim(claim_wrong(p, 1, 1) == 0);
	uint64_t before = tmfake_now();
	ok(cuMemFree_v2(p));
	claim(tmfake_now() - before >= 20 * MS);
	ok(cuMemGetInfo_v2(&available, &total));
	claim(available == 64 * MIB && total == 64 * MIB);
	ok(cuMemAlloc_v2(&p, 32 * MIB));
	ok(cuMemAlloc_v2(&q, 32 * MIB));
	gives(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(&r, 512));
	ok(cuMemFree_v2(p));
	gives(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(p));
	ok(cuMemFree_v2(q));
	gives(CUDA_ERROR_INVALID_VALUE, cuMemAlloc_v2(&p, 0));
	gives(CUDA_ERROR_INVALID_VALUE, cuMemAlloc_v2(NULL, 1));
}

static void small_blocks_share_a_page(void)
{
	CUdeviceptr p[3];
	int i;
	for (i = 0; i < 3; i++) {
		ok(cuMemAlloc_v2(&p[i], 1000));
		claim(p[i] % 512 == 0);
	}
	claim(p[1] - p[0] == 1024 && tmfake_used(0) == 2 * MIB);
	ok(cuMemFree_v2(p[1]));
	ok(cuMemAlloc_v2(&p[1], 900));
	claim(p[1] - p[0] == 1024);
	for (i = 0; i < 3; i++)
		ok(cuMemFree_v2(p[i]));
	claim(tmfake_used(0) == 0);
}

static void two_addresses_show_one_page(void)
{
	CUmemAllocationProp prop = {.type = 1, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0},
				  CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle handle;
	CUdeviceptr va;
	uint32_t word = 0;
	ok(cuMemAddressReserve(&va, 8 * MIB, 0, 0, 0));
	ok(cuMemCreate(&handle, 2 * MIB, &prop, 0));
	ok(cuMemMap(va, 2 * MIB, 0, handle, 0));
	ok(cuMemMap(va + 4 * MIB, 2 * MIB, 0, handle, 0));
	ok(cuMemSetAccess(va, 2 * MIB, &access, 1));
	gives(CUDA_ERROR_INVALID_VALUE, cuMemMap(va, 2 * MIB, 0, handle, 0));
	gives(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(va, 8 * MIB, &access, 1));
	ok(cuMemsetD32_v2(va, 42, 4));
	ok(cuCtxSynchronize());
	tmfake_peek(va + 4 * MIB, &word, 4);
	claim(word == 42);
	ok(cuMemRelease(handle));
	gives(CUDA_ERROR_INVALID_VALUE, cuMemRelease(handle));
	ok(cuMemUnmap(va, 2 * MIB));
	claim(tmfake_used(0) == 2 * MIB);
	ok(cuMemUnmap(va + 4 * MIB, 2 * MIB));
	claim(tmfake_used(0) == 0);
	ok(cuMemAddressFree(va, 8 * MIB));
}

static void capture_forbids_and_records(void)
{
	CUstream s;
	CUgraph graph = NULL;
	CUgraphExec exec;
	CUdeviceptr p, q;
	int i;
	ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	ok(cuMemAlloc_v2(&p, 4096));
	ok(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	ok(cuMemsetD32Async(p, 5, 1024, s));
	ok(cuStreamEndCapture(s, &graph));
	ok(cuGraphInstantiateWithFlags(&exec, graph, 0));
	ok(cuMemsetD32_v2(p, 1, 1024));
	for (i = 0; i < 3; i++)
		ok(cuGraphLaunch(exec, s));
	ok(cuStreamSynchronize(s));
	claim(claim_wrong(p, 5, 1024) == 0);
	ok(cuGraphDestroy(graph));
	ok(cuGraphExecDestroy(exec));
	ok(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	gives(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemAlloc_v2(&q, 4096));
	gives(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, &graph));
	ok(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	ok(cuMemAlloc_v2(&q, 4096));
	ok(cuMemFree_v2(q));
	gives(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuCtxSynchronize());
	gives(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, &graph));
	ok(cuMemFree_v2(p));
	ok(cuStreamDestroy_v2(s));
}

static void lookups_know_versions(CUcontext ctx)
{
	void *fn = NULL, *own = NULL;
	int status = -1;
	ok(cuGetProcAddress_v2("cuMemAlloc", &fn, 13000, 0, &status));
	claim(fn == (void *)(uintptr_t)cuMemAlloc_v2 && status == 0);
	ok(cuGetProcAddress_v2("cuMemAlloc", &fn, 2000, 0, &status));
	claim(fn == (void *)(uintptr_t)cuMemAlloc);
	ok(cuGetProcAddress_v2("cuMemAllocAsync", &fn, 11020, 0, &status));
	ok(cuGetProcAddress_v2("cuMemAllocAsync", &own, 11020, 2, &status));
	claim(fn != own && own != NULL);
	ok(cuGetProcAddress_v2("cuCtxRecordEvent", &fn, 12000, 0, &status));
	claim(fn == NULL && status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
	ok(cuGetProcAddress_v2("cuNothing", &fn, 12000, 0, &status));
	claim(fn == NULL && status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	gives(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress_v2("cuMemAlloc", &fn, 99000, 0, &status));
	(void)ctx;
}

static void contexts_take_their_memory_along(void)
{
	CUcontext a, b;
	CUdeviceptr p;
	uint64_t live = tmfake_live();
	ok(cuCtxCreate_v2(&a, 0, 1));
	ok(cuMemAlloc_v2(&p, MIB));
	claim(tmfake_live() == live + 1);
	ok(cuCtxDestroy_v2(a));
	claim(tmfake_live() == live);
	ok(cuCtxCreate_v2(&b, 0, 1));
	claim(a == b, "the handle is used again");
	ok(cuCtxDestroy_v2(b));
}

static void faults_strike_and_stick(CUcontext ctx)
{
	CUdeviceptr p;
	ok(tmfake_fail("cuMemAlloc_v2", 2, CUDA_ERROR_OUT_OF_MEMORY));
	ok(cuMemAlloc_v2(&p, 512));
	gives(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(&p, 512));
	ok(cuMemFree_v2(p));
	ok(tmfake_fill(NULL, 0x123450000, 1, 1, 0));
	gives(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
	gives(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemAlloc_v2(&p, 512));
	claim(tmfake_misuse() == 1);
	(void)ctx;
}

int main(void)
{
	CUcontext ctx = claim_context();
	free_waits_and_work_comes_late();
	small_blocks_share_a_page();
	two_addresses_show_one_page();
	capture_forbids_and_records();
	lookups_know_versions(ctx);
	contexts_take_their_memory_along();
	faults_strike_and_stick(ctx);
	return claim_end();
}
