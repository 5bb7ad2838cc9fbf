/* SPDX-License-Identifier: MIT */
/* libs: libcudart.so.12 */
/* libruntime12: a plug-in that was linked with the runtime of CUDA 12. */
#include "tests/cuda/fakert/cudart.h"

int runtime_version(void);
void *runtime_alloc(size_t bytes);
int runtime_free(void *p);

int runtime_version(void)
{
	int version = 0;
	return cudaRuntimeGetVersion(&version) == 0 ? version : -1;
}

void *runtime_alloc(size_t bytes)
{
	void *p = NULL;
	return cudaMalloc(&p, bytes) == 0 ? p : NULL;
}

int runtime_free(void *p)
{
	return cudaFree(p);
}
