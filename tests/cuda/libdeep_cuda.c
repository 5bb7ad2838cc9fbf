/* SPDX-License-Identifier: MIT */
/* libs: libcuda.so.1 */
/* libdeep_cuda: a plug-in for RTLD_DEEPBIND, which binds to the driver itself and finds it by dlsym. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/cuda/cu.h"

void *deep_linked(void);
void *deep_found(void);

void *deep_linked(void)
{
	return (void *)(uintptr_t)cuMemAlloc_v2;
}

void *deep_found(void)
{
	return dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuGetProcAddress_v2");
}
