/* SPDX-License-Identifier: MIT */
/*
 * The default stream of each thread has the same handle (cub#373): what is waited for before memory is
 * used again must be the context's work, not this thread's.
 */
/* libs: libcuda.so.1 */
/* preload: none */
#include "tests/cuda/modes.h"

#include <pthread.h>

static CUcontext ctx;
static CUdeviceptr p;
static pthread_barrier_t barrier;

static void *writer(void *unused)
{
	int i;
	ok(cuCtxSetCurrent(ctx));
	for (i = 0; i < 25; i++) {
		pthread_barrier_wait(&barrier);
		ok(tmfake_fill(CU_STREAM_PER_THREAD, p, 0xbad, 65536 / 4, 20 * MS));
		pthread_barrier_wait(&barrier);
	}
	return unused;
}

static void body(const char *mode)
{
	pthread_t thread;
	CUdeviceptr q;
	int i;
	ctx = claim_context();
	pthread_barrier_init(&barrier, NULL, 2);
	if (pthread_create(&thread, NULL, writer, NULL) != 0)
		exit(2);
	for (i = 0; i < 25; i++) {
		ok(cuMemAlloc_v2(&p, 3 * MIB));
		pthread_barrier_wait(&barrier);
		pthread_barrier_wait(&barrier);
		ok(cuMemFree_v2(p));
		ok(cuMemAlloc_v2(&q, 3 * MIB));
		ok(tmfake_fill(CU_STREAM_PER_THREAD, q, 0x600d, 65536 / 4, 1000));
		ok(cuStreamSynchronize(CU_STREAM_PER_THREAD));
		tmfake_advance(50 * MS);
		claim(claim_wrong(q, 0x600d, 65536 / 4) == 0, "%s: round %d", mode, i);
		ok(cuMemFree_v2(q));
	}
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	return modes_run(argc, argv, body, MODES_ALL);
}
