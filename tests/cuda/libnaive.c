/* SPDX-License-Identifier: MIT */
/*
 * libnaive: what the library must not be, a pool that hands freed device memory on at once. Its only
 * use is to show that the tests see the difference (naive_reuse_is_caught).
 */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "tests/cuda/cu.h"

static struct {
	CUdeviceptr at;
	size_t bytes;
	int idle;
} block[65536];
static size_t used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes)
{
	CUresult (*next)(CUdeviceptr *, size_t) =
		(CUresult(*)(CUdeviceptr *, size_t))dlsym(RTLD_NEXT, __func__);
	CUresult rc = CUDA_ERROR_OUT_OF_MEMORY;
	size_t i;
	pthread_mutex_lock(&lock);
	for (i = 0; i < used; i++)
		if (block[i].idle && block[i].bytes == bytes) {
			block[i].idle = 0;
			*pointer = block[i].at;
			rc = CUDA_SUCCESS;
			break;
		}
	if (i == used && used < sizeof(block) / sizeof(block[0])) {
		rc = next(pointer, bytes);
		if (rc == CUDA_SUCCESS) {
			block[used].at = *pointer;
			block[used++].bytes = bytes;
		}
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

CUresult cuMemFree_v2(CUdeviceptr pointer)
{
	size_t i;
	pthread_mutex_lock(&lock);
	for (i = 0; i < used; i++)
		if (block[i].at == pointer)
			block[i].idle = 1;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}
