/* SPDX-License-Identifier: MIT */
/*
 * A program that only asks whether it was linked with CUDA: its weak references are bound to the library's
 * functions, as no preload can help. Without a driver their calls fail, and dlsym finds nothing.
 */
#include "tests/cuda/claim.h"

extern CUresult cuInit(unsigned flags) __attribute__((weak));
extern int cudaMalloc(void **ret, size_t bytes) __attribute__((weak));
extern int cudaFree(void *p) __attribute__((weak));

int main(void)
{
	void *p = NULL;
	claim(dlsym(RTLD_DEFAULT, "cuInit") == NULL);
	claim(dlsym(RTLD_DEFAULT, "cudaMalloc") == NULL);
	if (cuInit != NULL)
		claim(cuInit(0) != CUDA_SUCCESS);
	if (cudaMalloc != NULL)
		claim(cudaMalloc(&p, 4096) != 0);
	if (cudaFree != NULL)
		claim(cudaFree(p) != 0);
	return claim_end();
}
