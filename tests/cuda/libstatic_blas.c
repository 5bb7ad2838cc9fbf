/* SPDX-License-Identifier: MIT */
/* A library with a runtime of its own inside, as cuBLAS has. */
/* libs: libcudart_static.a */
/* build: -Wl,--exclude-libs,ALL */
#include "tests/cuda/fakert/cudart.h"

int blas_create(void **ret, size_t bytes);
void *blas_thread(void *ret);

static __attribute__((noinline)) int workspace(void **ret, size_t bytes)
{
	int rc = cudaMalloc(ret, bytes);
	return rc;
}

int blas_create(void **ret, size_t bytes)
{
	int rc = workspace(ret, bytes);
	return rc;
}

void *blas_thread(void *ret)
{
	workspace(ret, 7 << 20);
	return NULL;
}
