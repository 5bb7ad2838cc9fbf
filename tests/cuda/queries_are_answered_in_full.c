/* SPDX-License-Identifier: MIT */
/*
 * Queries take NULLs where the driver does (HAMi-core#321, #333), leave everything alone when they
 * fail, and say what memory really is (HAMi-core#281, nvshare#29): managed memory stays managed, the
 * range of a block is the driver's.
 */
/* libs: libcuda.so.1 */
/* preload: none */
#include "tests/cuda/modes.h"

static size_t least; /* stitched blocks tell the size of one chunk */

static void attributes(CUcontext ctx, CUdeviceptr p, CUdeviceptr managed, void *host)
{
	int names[] = {CU_POINTER_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
		       CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
	int is = 7, type = 7, device = 7;
	size_t bytes = 7;
	void *data[] = {&is, &type, &device, &bytes};
	CUcontext of = NULL;
	ok(cuPointerGetAttributes(4, names, data, p));
	claim(is == 0 && type == CU_MEMORYTYPE_DEVICE && device == 0 && bytes >= least);
	ok(cuPointerGetAttributes(4, names, data, managed));
	claim(is == 1 && type == CU_MEMORYTYPE_DEVICE);
	ok(cuPointerGetAttributes(4, names, data, (uintptr_t)host));
	claim(is == 0 && type == CU_MEMORYTYPE_HOST);
	ok(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_CONTEXT, managed));
	claim(of == ctx);
	is = type = 7;
	names[1] = 999;
	gives(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttributes(2, names, data, p));
	claim(is == 7 && type == 7, "touched although it failed");
	ok(tmfake_fail("cuPointerGetAttribute", 1, CUDA_ERROR_UNKNOWN));
	gives(CUDA_ERROR_UNKNOWN, cuPointerGetAttribute(&is, CU_POINTER_ATTRIBUTE_IS_MANAGED, p));
	claim(is == 7);
	gives(CUDA_ERROR_INVALID_VALUE,
	      cuPointerGetAttribute(NULL, CU_POINTER_ATTRIBUTE_IS_MANAGED, p));
}

static void ranges(CUdeviceptr p)
{
	CUdeviceptr base, real_base = 0;
	size_t bytes, real_bytes = 0, offset;
	for (offset = 0; offset < 5 * MIB; offset += 777777) {
		ok(tmfake_range(p + offset, &real_base, &real_bytes));
		ok(cuMemGetAddressRange_v2(&base, &bytes, p + offset));
		claim(base == real_base && bytes == real_bytes);
		ok(cuMemGetAddressRange_v2(NULL, &bytes, p + offset));
		ok(cuMemGetAddressRange_v2(&base, NULL, p + offset));
		ok(cuMemGetAddressRange_v2(NULL, NULL, p + offset));
		claim(base == real_base && bytes == real_bytes);
	}
}

static void body(const char *mode)
{
	CUcontext ctx = claim_context();
	CUdeviceptr p, managed;
	void *host;
	size_t available, total, again;
	least = modes_is(mode, "vmm") ? 2 * MIB : 5 * MIB;
	ok(cuMemAlloc_v2(&p, 5 * MIB));
	ok(cuMemFree_v2(p));
	ok(cuMemAlloc_v2(&p, 5 * MIB));
	ok(cuMemAllocManaged(&managed, MIB, CU_MEM_ATTACH_GLOBAL));
	ok(cuMemHostAlloc(&host, MIB, 0));
	ok(cuMemGetInfo_v2(&available, &total));
	ok(cuMemGetInfo_v2(NULL, &again));
	claim(again == total);
	ok(cuMemGetInfo_v2(&again, NULL));
	claim(again == available);
	ok(cuMemGetInfo_v2(NULL, NULL));
	gives(CUDA_ERROR_INVALID_VALUE, cuMemAlloc_v2(NULL, 512));
	gives(CUDA_ERROR_INVALID_VALUE, cuMemHostAlloc(NULL, 512, 0));
	attributes(ctx, p, managed, host);
	ranges(p);
	ok(cuMemFree_v2(managed));
	ok(cuMemFree_v2(p));
	ok(cuMemFreeHost(host));
	gives(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(host));
	gives(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(NULL));
}

int main(int argc, char **argv)
{
	return modes_run(argc, argv, body, MODES_ALL);
}
