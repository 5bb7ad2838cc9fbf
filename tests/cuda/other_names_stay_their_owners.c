/* SPDX-License-Identifier: MIT */
/*
 * Names of other libraries that begin with cu are theirs (HAMi-core#215), also where the handle is the
 * driver's own, a driver is asked for what it has not, or nobody has loaded one.
 */
#include "tests/cuda/seen.h"

int main(void)
{
	static const char *const names[] = {"cudnnCreate", "cublasCreate_v2", "curl_easy_init",
					    "cuMemAllocate", "cuCtxCreateSomething"};
	void *library, *driver, *handle = NULL;
	size_t i;
	claim(dlsym(RTLD_DEFAULT, "cuMemAlloc_v2") == NULL, "no driver, no function");
	claim(dlsym(RTLD_DEFAULT, "cudaMalloc") == NULL, "no runtime, no function");
	library = dlopen("libcudnn_like.so", RTLD_NOW | RTLD_LOCAL);
	claim(library != NULL, "%s", dlerror());
	for (i = 0; i < 5; i++) {
		void *fn = dlsym(library, names[i]);
		claim(strcmp(seen_owner(fn), "libcudnn_like.so") == 0, "%s of %s", names[i],
		      seen_owner(fn));
	}
	claim(((int (*)(void **))dlsym(library, "cudnnCreate"))(&handle) == 7 && handle == &handle);
	claim(dlsym(library, "cuMemAlloc_v2") == NULL, "asked of a library that has none");
	driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	for (i = 0; i < 5; i++)
		claim(dlsym(driver, names[i]) == NULL, "%s", names[i]);
	claim(dlsym(driver, "cuMemAllocNothing") == NULL && dlerror() != NULL);
	return claim_end();
}
