/* SPDX-License-Identifier: MIT */
/*
 * A runtime that is part of the program: its cudaMalloc can't be replaced, its lookups can. The driver
 * that looks for its own functions while it starts (H88) changes nothing.
 */
/* libs: libcudart_static.a */
/* env: TMFAKE_SELF=1 TMFAKE_STRICT=1 */
#include "tests/cuda/seen.h"

#include "tests/cuda/fakert/cudart.h"

int main(void)
{
	void *p[10], *host, *as;
	size_t i;
	SEEN_NEEDS_HOOKS();
	claim(!seen_ours((void *)(uintptr_t)cudaMalloc));
	for (i = 0; i < 10; i++)
		ok(cudaMalloc(&p[i], MIB));
	claim(seen_blocks(0, "device") == 10, "%ld", seen_blocks(0, "device"));
	ok(cudaMallocHost(&host, 4096));
	claim(seen_blocks(0, "pinned host") == 1);
	ok(cudaMallocAsync(&as, 4096, NULL));
	claim(seen_blocks(0, "stream-ordered") == 1);
	ok(cudaFreeAsync(as, NULL));
	claim(seen_blocks(0, "stream-ordered") == 0);
	ok(cudaMallocAsync_ptsz(&as, 4096, NULL));
	claim(seen_blocks(0, "stream-ordered") == 1);
	ok(cudaFreeAsync_ptsz(as, NULL));
	claim(seen_blocks(0, "stream-ordered") == 0);
	for (i = 0; i < 10; i++)
		ok(cudaFree(p[i]));
	ok(cudaFreeHost(host));
	claim(seen_blocks(0, "device") == 0 && seen_blocks(0, "pinned host") == 0);
	uint64_t (*misuse)(void) =
		(uint64_t(*)(void))dlsym(dlopen("libcuda.so.1", RTLD_NOW), "tmfake_misuse");
	claim(misuse() == 0, "the driver found itself");
	return claim_end();
}
