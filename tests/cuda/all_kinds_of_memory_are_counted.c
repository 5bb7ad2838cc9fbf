/* SPDX-License-Identifier: MIT */
/*
 * Memory that never passes cudaMalloc is counted too (H90): managed, pinned, registered, stream-ordered,
 * mapped, arrays, other processes'. Each kind has its row, each free takes it off, and what the driver
 * refused is in none.
 */
/* libs: libcuda.so.1 */
#include "tests/cuda/seen.h"

static char page[8192] __attribute__((aligned(4096)));

int main(void)
{
	CUmemAllocationProp prop = {.type = 1, .location = {1, 0}};
	CUDA_ARRAY_DESCRIPTOR two = {256, 256, 1, 1};
	CUDA_ARRAY3D_DESCRIPTOR three = {64, 64, 64, 1, 1, 0};
	CUmemGenericAllocationHandle handle;
	CUmipmappedArray mipmap;
	CUmemoryPool pool;
	CUdeviceptr p, q, pitch_p, managed, as[2];
	CUarray array, solid;
	size_t pitch;
	void *host[2];
	SEEN_NEEDS_HOOKS();
	claim_context();
	ok(cuMemAlloc_v2(&p, MIB));
	ok(cuMemAllocPitch_v2(&pitch_p, &pitch, 1000, 10, 4));
	claim(seen_blocks(0, "device") == 2, "%ld", seen_blocks(0, "device"));
	ok(cuMemAllocManaged(&managed, MIB, CU_MEM_ATTACH_GLOBAL));
	claim(seen_blocks(0, "managed") == 1);
	ok(cuMemAllocHost_v2(&host[0], 100));
	ok(cuMemHostAlloc(&host[1], 100, 2));
	claim(seen_blocks(0, "pinned host") == 2);
	ok(cuMemHostRegister_v2(page, sizeof(page), 0));
	claim(seen_blocks(0, "registered host") == 1);
	ok(cuMemAllocAsync(&as[0], MIB, NULL));
	ok(cuDeviceGetDefaultMemPool(&pool, 0));
	ok(cuMemAllocFromPoolAsync(&as[1], MIB, pool, NULL));
	claim(seen_blocks(0, "stream-ordered") == 2);
	ok(cuMemCreate(&handle, 2 * MIB, &prop, 0));
	claim(seen_blocks(0, "virtual memory") == 1);
	ok(cuArrayCreate_v2(&array, &two));
	ok(cuArray3DCreate_v2(&solid, &three));
	ok(cuMipmappedArrayCreate(&mipmap, &three, 2));
	claim(seen_blocks(0, "arrays") == 3, "%ld", seen_blocks(0, "arrays"));
	gives(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(&q, (size_t)1 << 50));
	gives(CUDA_ERROR_INVALID_VALUE, cuMemHostAlloc(&host[1], 0, 0));
	gives(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister_v2(page, 4096, 0));
	claim(seen_blocks(0, "device") == 2 && seen_blocks(0, "registered host") == 1);
	ok(cuMemFree_v2(p));
	ok(cuMemFree_v2(pitch_p));
	ok(cuMemFree_v2(managed));
	ok(cuMemFreeHost(host[0]));
	ok(cuMemFreeHost(host[1]));
	ok(cuMemHostUnregister(page));
	ok(cuMemFreeAsync(as[0], NULL));
	ok(cuMemFree_v2(as[1]));
	ok(cuMemRelease(handle));
	ok(cuArrayDestroy(array));
	ok(cuArrayDestroy(solid));
	ok(cuMipmappedArrayDestroy(mipmap));
	static const char *const kinds[] = {"device",          "managed",        "pinned host",
					    "registered host", "stream-ordered", "virtual memory",
					    "arrays"};
	size_t i;
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		claim(seen_blocks(0, kinds[i]) == 0, "%s: %ld", kinds[i], seen_blocks(0, kinds[i]));
	return claim_end();
}
