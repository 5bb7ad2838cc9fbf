/* SPDX-License-Identifier: MIT */
/*
 * What a framework's own cache reserved is live for the driver, and the report says whose it is; memory
 * that the program asked for itself stands beside it. Blocks of more call sites than the table has rows
 * are those of other sites, not of an address.
 */
/* libs: libcuda.so.1 */
/* preload: none */
#include "tests/cuda/seen.h"

static int part(void)
{
	int (*reserve)(CUdeviceptr *, size_t);
	void *library = dlopen(claim_beside("libc10_cuda.so"), RTLD_NOW), *fn;
	const char *text;
	CUdeviceptr p;
	claim(library != NULL, "%s", dlerror());
	fn = dlsym(library, "reserve");
	memcpy(&reserve, &fn, sizeof(fn));
	claim_context();
	ok(reserve(&p, 20 * MIB));
	ok(cuMemAlloc_v2(&p, 2 * MIB));
	text = seen_told("");
	claim(strstr(text, "reserved by a framework's cache") != NULL, "%s", text);
	claim(strstr(text, "libc10_cuda.so+0x") != NULL && strstr(text, "22.0") != NULL, "%s",
	      text);
	text = seen_told("--json");
	claim(strstr(text, "cuMemAlloc, reserved by a framework's cache") != NULL);
	claim(strstr(text, "\"0x1\"") == NULL);
	return claim_end();
}

int main(int argc, char **argv)
{
	(void)argv;
	return seen_with_ledger(argc, part);
}
