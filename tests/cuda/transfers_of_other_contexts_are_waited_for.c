/* SPDX-License-Identifier: MIT */
/*
 * Pinned memory is reached by every device, and device memory by other contexts of the same device: a
 * transfer of one may be under way when the block is freed in another. Whoever gets the memory next never
 * sees those bytes.
 */
/* libs: libcuda.so.1 */
/* preload: none */
/* env: TMFAKE_DEVICES=2 */
#include "tests/cuda/modes.h"

#define WORDS 25000

static CUcontext ctx[2];
static CUstream stream;
static CUdeviceptr source;

/* On the second device: a copy to `host` that ends long after this returns. */
static void copy_late(void *host)
{
	ok(cuCtxSetCurrent(ctx[1]));
	ok(tmfake_fill(stream, source, 0xdeadbeefu, WORDS, 20 * MS));
	ok(cuMemcpyDtoHAsync_v2(host, source, WORDS * 4, stream));
	ok(cuCtxSetCurrent(ctx[0]));
}

static void body(const char *mode)
{
	uint32_t *host, wrong = 0;
	int round, i;
	ok(cuInit(0));
	for (i = 0; i < 2; i++) {
		ok(cuDevicePrimaryCtxRetain(&ctx[i], i));
		ok(cuCtxSetCurrent(ctx[i]));
	}
	ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	ok(cuMemAlloc_v2(&source, WORDS * 4));
	ok(cuCtxSetCurrent(ctx[0]));
	for (round = 0; round < 8; round++) {
		ok(cuMemHostAlloc((void **)&host, WORDS * 4, 0));
		copy_late(host);
		ok(cuMemFreeHost(host));
		ok(cuMemHostAlloc((void **)&host, WORDS * 4, 0));
		for (i = 0; i < WORDS; i++)
			host[i] = 7;
		tmfake_advance(40 * MS);
		for (i = 0; i < WORDS; i++)
			wrong += host[i] != 7;
		ok(cuMemFreeHost(host));
	}
	claim(wrong == 0, "%s: %u words of another device's transfer", mode, wrong);
	claim(tmfake_misuse() == 0);
}

int main(int argc, char **argv)
{
	return modes_run(argc, argv, body, MODES_ALL);
}
