/* SPDX-License-Identifier: MIT */
/*
 * libcudnn_like: names that begin as the driver's do and are not, and a library that opens its parts
 * by name, found by its own run path, as cuDNN opens libcudnn_ops.
 */
#include <dlfcn.h>
#include <stddef.h>

int cudnnCreate(void **handle);
int cublasCreate_v2(void **handle);
int curl_easy_init(void);
int cuMemAllocate(void);
int cuCtxCreateSomething(void);
const char *cudnn_like_part(void);

int cudnnCreate(void **handle)
{
	*handle = handle;
	return 7;
}

int cublasCreate_v2(void **handle)
{
	*handle = handle;
	return 8;
}

int curl_easy_init(void)
{
	return 9;
}

int cuMemAllocate(void)
{
	return 10;
}

int cuCtxCreateSomething(void)
{
	return 11;
}

const char *cudnn_like_part(void)
{
	void *part = dlopen("libcudnn_like_ops.so", RTLD_NOW);
	return part != NULL ? NULL : dlerror();
}
