/* SPDX-License-Identifier: MIT */
/*
 * A program that opens the driver only to see whether there is one closes it again, several times over,
 * with others of its libraries at the addresses meanwhile. The one that it uses in the end is seen.
 */
#include "tests/cuda/seen.h"

#include <sys/mman.h>

static void *keep_address_away(void *driver)
{
	Dl_info info;
	claim(dladdr(dlsym(driver, "cuDriverGetVersion"), &info) != 0);
	dlclose(driver);
	return mmap(info.dli_fbase, 4096, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

int main(void)
{
	CUresult (*init)(unsigned), (*retain)(CUcontext *, int), (*set)(CUcontext);
	CUresult (*alloc)(CUdeviceptr *, size_t);
	CUdeviceptr p;
	CUcontext ctx;
	void *driver, *again, *fn;
	int i;
	SEEN_NEEDS_HOOKS();
	for (i = 0; i < 3; i++) {
		driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
		claim(driver != NULL, "%s", dlerror());
		claim(seen_ours(dlsym(driver, "cuMemAlloc_v2")), "open number %d", i + 1);
		keep_address_away(driver);
	}
	driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	again = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	claim(driver != NULL && again == driver);
#define GET(pointer, name)                                                                         \
	fn = dlsym(driver, name);                                                                  \
	memcpy(&pointer, &fn, sizeof(fn))
	GET(init, "cuInit");
	GET(retain, "cuDevicePrimaryCtxRetain");
	GET(set, "cuCtxSetCurrent");
	GET(alloc, "cuMemAlloc_v2");
	dlclose(again);
	ok(init(0));
	ok(retain(&ctx, 0));
	ok(set(ctx));
	ok(alloc(&p, 4096));
	claim(seen_blocks(0, "device") == 1, "%ld blocks", seen_blocks(0, "device"));
	return claim_end();
}
