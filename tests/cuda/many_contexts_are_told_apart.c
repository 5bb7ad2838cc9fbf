/* SPDX-License-Identifier: MIT */
/*
 * More contexts than there are records of: blocks of each are freed under another, by another thread, with
 * their context, or after it. Nothing stays behind on the device, and what is still there is told apart.
 */
/* libs: libcuda.so.1 */
/* preload: none */
/* env: TMFAKE_DEVICES=2 */
#include "tests/cuda/modes.h"

#include <pthread.h>

#define CONTEXTS 100

static CUcontext ctx[CONTEXTS];
static CUdeviceptr block[CONTEXTS][3];

static void *free_second(void *unused)
{
	int i;
	(void)unused;
	for (i = 0; i < CONTEXTS; i++) {
		ok(cuCtxSetCurrent(ctx[CONTEXTS - 1 - i]));
		ok(cuMemFree_v2(block[i][1]));
	}
	return NULL;
}

static void round_of(void)
{
	pthread_t thread;
	CUcontext popped;
	CUdeviceptr p;
	int i, k;
	for (i = 0; i < CONTEXTS; i++) {
		ok(cuCtxCreate_v2(&ctx[i], 0, i % 2));
		for (k = 0; k < 3; k++)
			ok(cuMemAlloc_v2(&block[i][k], 3 * MIB));
		ok(tmfake_fill(NULL, block[i][0], (uint32_t)i + 1, 1024, 1000));
		ok(cuMemFree_v2(block[i][2]));
		ok(cuCtxPopCurrent_v2(&popped));
	}
	claim(pthread_create(&thread, NULL, free_second, NULL) == 0 &&
	      pthread_join(thread, NULL) == 0);
	for (i = 0; i < CONTEXTS; i++) {
		ok(cuCtxSetCurrent(ctx[i]));
		ok(cuCtxSynchronize());
		claim(claim_wrong(block[i][0], (uint32_t)i + 1, 1024) == 0, "context %d", i);
		ok(cuMemAlloc_v2(&p, 3 * MIB));
		ok(tmfake_fill(NULL, p, 77, 1024, 1000));
		if (i % 3 == 0)
			ok(cuMemFree_v2(block[i][0]));
	}
	for (i = 0; i < CONTEXTS; i++)
		ok(cuCtxDestroy_v2(ctx[i]));
}

static void body(const char *mode)
{
	size_t before, after, total;
	CUcontext primary = claim_context();
	int i;
	ok(cuMemGetInfo_v2(&before, &total));
	for (i = 0; i < 3; i++) {
		round_of();
		ok(cuCtxSetCurrent(primary));
		ok(cuMemGetInfo_v2(&after, &total));
		claim(after == before, "%s: %zu bytes are missing", mode, before - after);
	}
	claim(tmfake_misuse() == 0, "%s", mode);
}

int main(int argc, char **argv)
{
	return modes_run(argc, argv, body, MODES_ALL);
}
