/* SPDX-License-Identifier: MIT */
/* Reserves device memory as a framework's caching allocator does; its name is what tells. */
#include "tests/cuda/cu.h"

int reserve(CUdeviceptr *ret, size_t bytes);

int reserve(CUdeviceptr *ret, size_t bytes)
{
	int rc = cuMemAlloc_v2(ret, bytes);
	return rc;
}
