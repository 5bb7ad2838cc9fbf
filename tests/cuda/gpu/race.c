/* SPDX-License-Identifier: MIT */
/*
 * race naive|library   H5: kernels write to blocks that are freed under them; the next owner looks for
 * their bytes. naive: a pool of this program that hands memory on at once, which must be caught.
 */
#include "tests/cuda/gpu/gpu.h"

#include <pthread.h>

#define THREADS 4
#define WORDS (256 * 1024)
#define LATE ((uint64_t)20000000)

static CUcontext ctx;
static bool naive;
static unsigned rounds;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUdeviceptr idle[THREADS];
static unsigned idle_count;
static _Atomic uint64_t corrupted, caught_in;

static CUdeviceptr take(void)
{
	CUdeviceptr p = 0;
	pthread_mutex_lock(&lock);
	if (naive && idle_count > 0)
		p = idle[--idle_count];
	pthread_mutex_unlock(&lock);
	if (p == 0)
		GPU_NEED("H5", cuMemAlloc_v2(&p, WORDS * 4));
	return p;
}

static void give(CUdeviceptr p)
{
	pthread_mutex_lock(&lock);
	if (naive && idle_count < THREADS) {
		idle[idle_count++] = p;
		p = 0;
	}
	pthread_mutex_unlock(&lock);
	if (p != 0)
		GPU_NEED("H5", cuMemFree_v2(p));
}

static void *work(void *arg)
{
	CUstream late, own;
	unsigned i;
	size_t wrong;
	uint32_t value = 0x100u * (unsigned)(uintptr_t)arg;
	GPU_NEED("H5", cuCtxSetCurrent(ctx));
	GPU_NEED("H5", cuStreamCreate(&late, CU_STREAM_NON_BLOCKING));
	GPU_NEED("H5", cuStreamCreate(&own, CU_STREAM_NON_BLOCKING));
	for (i = 0; i < rounds; i++) {
		CUdeviceptr p = take(), q;
		GPU_NEED("H5", gpu_fill(late, p, 0xdeadu, WORDS, LATE));
		give(p);
		q = take();
		GPU_NEED("H5", gpu_fill(own, q, value + i, WORDS, 0));
		/* Until the late kernel has ended, whoever's memory that is now. */
		GPU_NEED("H5", cuStreamSynchronize(late));
		GPU_NEED("H5", cuStreamSynchronize(own));
		wrong = gpu_wrong(q, value + i, WORDS);
		corrupted += 4 * wrong;
		caught_in += wrong > 0;
		give(q);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread[THREADS];
	unsigned i;
	naive = argc > 1 && strcmp(argv[1], "naive") == 0;
	ctx = gpu_begin("H5");
	rounds = gpu_rounds(naive ? 50 : 200);
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, work, (void *)(uintptr_t)(i + 1)) != 0)
			return 1;
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	gpu_line("H5", naive == (corrupted > 0) ? GPU_OK : GPU_BAD,
		 naive ? "naive is caught" : "no byte of another",
		 ", \"mode\": \"%s\", \"rounds\": %u, \"caught\": %llu, \"corrupted\": %llu",
		 getenv("TM_GPU_MODE") ? getenv("TM_GPU_MODE") : "bare", rounds * THREADS,
		 (unsigned long long)caught_in, (unsigned long long)corrupted);
	return gpu_failures != 0;
}
