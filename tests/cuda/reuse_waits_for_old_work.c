/* SPDX-License-Identifier: MIT */
/*
 * Threads allocate, write, look and free in a hurry: a block is freed while a last kernel still
 * writes to it. Whoever gets the memory next must never see those bytes. 8 threads, 4 streams; the
 * bytes of every block are compared before it is freed. On the bare driver, in observe mode and for
 * every pool, strict and by event. `naive_reuse_is_caught` runs this program on a pool that hands
 * memory on at once and expects it to fail.
 */
/* libs: libcuda.so.1 */
/* preload: none */
#include "tests/cuda/modes.h"

#include <pthread.h>

#define THREADS 8
#define STREAMS 4
#define HELD 8

struct block {
	CUdeviceptr at;
	uint32_t value;
	size_t words;
	CUstream stream;
};

static CUcontext ctx;
static CUstream streams[STREAMS];
static uint64_t rounds_each;
static _Atomic uint64_t corrupted, failed;

static uint32_t draw(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

static void put(struct block *b, uint32_t *state)
{
	static const size_t sizes[] = {512, 1536, 4096, 4096, 8192, 16384};
	size_t bytes = sizes[draw(state) % 6];
	if (cuMemAlloc_v2(&b->at, bytes) != CUDA_SUCCESS) {
		failed++;
		b->at = 0;
		return;
	}
	b->words = bytes / 4;
	b->value = draw(state) | 0x80000000u;
	b->stream = streams[draw(state) % STREAMS];
	if (tmfake_fill(b->stream, b->at, b->value, b->words, draw(state) % 20000) != CUDA_SUCCESS)
		failed++;
}

static void take(struct block *b, uint32_t *state)
{
	if (cuStreamSynchronize(b->stream) != CUDA_SUCCESS)
		failed++;
	corrupted += 4 * claim_wrong(b->at, b->value, b->words);
	/* The last use: it ends long after the free. */
	tmfake_fill(streams[draw(state) % STREAMS], b->at, 0xdead0000u, b->words,
		    draw(state) % 200000);
	if (cuMemFree_v2(b->at) != CUDA_SUCCESS)
		failed++;
	b->at = 0;
}

static void *work(void *seed)
{
	uint32_t state = (uint32_t)(uintptr_t)seed * 7919u + 1;
	struct block held[HELD];
	uint64_t round;
	int i;
	memset(held, 0, sizeof(held));
	ok(cuCtxSetCurrent(ctx));
	for (round = 0; round < rounds_each; round++) {
		struct block *b = &held[draw(&state) % HELD];
		if (b->at != 0)
			take(b, &state);
		put(b, &state);
	}
	for (i = 0; i < HELD; i++)
		if (held[i].at != 0)
			take(&held[i], &state);
	return NULL;
}

static void body(const char *mode)
{
	pthread_t thread[THREADS];
	uint64_t allocs;
	int i;
	const char *rounds = getenv("TM_ROUNDS");
	rounds_each = strtoull(rounds ? rounds : "60000", NULL, 10) / THREADS;
	ctx = claim_context();
	for (i = 0; i < STREAMS; i++)
		ok(cuStreamCreate(&streams[i], i % 2 ? CU_STREAM_NON_BLOCKING : 0));
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, work, (void *)(uintptr_t)(i + 1)) != 0)
			exit(2);
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	allocs = tmfake_calls("cuMemAlloc_v2");
	printf("%s: %llu rounds, %llu driver allocations, %llu bytes corrupted, %llu calls failed\n",
	       mode, (unsigned long long)rounds_each * THREADS, (unsigned long long)allocs,
	       (unsigned long long)corrupted, (unsigned long long)failed);
	claim(corrupted == 0, "%llu bytes", (unsigned long long)corrupted);
	claim(failed == 0, "%llu calls", (unsigned long long)failed);
	claim(tmfake_misuse() == 0);
}

int main(int argc, char **argv)
{
	if (getenv("TM_LONG") != NULL)
		setenv("TM_ROUNDS", "1000000", 0);
	setenv("TMFAKE_SEED", "1", 0);
	return modes_run(argc, argv, body, MODES_ALL);
}
