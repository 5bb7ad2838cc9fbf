/* SPDX-License-Identifier: MIT */
/* runtime_plugin: what a plug-in does, whichever runtime it was linked with. Included once by each. */
#ifndef TESTS_CUDA_RUNTIME_PLUGIN_H
#define TESTS_CUDA_RUNTIME_PLUGIN_H

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

#endif
