/* SPDX-License-Identifier: MIT */
/* run: none */
/* libs: libcuda.so.1 */
/*
 * Steps of a program that loses a device block, a stream-ordered one and pinned memory in some of them,
 * beside what only looks like that: a cache that fills, work memory, weights that stay.
 */
#include <stdlib.h>
#include <time.h>

#include "tests/cuda/claim.h"

#define KEEP __attribute__((noinline))

/* The call must not be the last thing that a function does, else it is a jump. */
static volatile int calls;
static CUdeviceptr cache[64];

KEEP static void lose_device(void)
{
	CUdeviceptr p;

	ok(cuMemAlloc_v2(&p, 64 << 10)); /* leaks: device */
	calls++;
}

KEEP static void lose_async(void)
{
	CUdeviceptr p;

	ok(cuMemAllocAsync(&p, 96 << 10, NULL)); /* leaks: async */
	calls++;
}

KEEP static void lose_pinned(void)
{
	void *p;

	ok(cuMemHostAlloc(&p, 8 << 10, 0)); /* leaks: pinned */
	calls++;
}

KEEP static void fill_cache(int step)
{
	CUdeviceptr *place = &cache[(unsigned)step * 2654435761u >> 26];

	if (*place != 0)
		ok(cuMemFree_v2(*place));
	ok(cuMemAlloc_v2(place, 32 << 10));
	calls++;
}

KEEP static void work(void)
{
	CUdeviceptr p;

	ok(cuMemAlloc_v2(&p, 1 << 20));
	calls++;
	ok(cuMemFree_v2(p));
}

KEEP static void load(void)
{
	static CUdeviceptr weights[40];

	for (int i = 0; i < 40; i++) {
		ok(cuMemAlloc_v2(&weights[i], 1 << 20));
		calls++;
	}
}

int main(void)
{
	static void *host[256];

	claim_context();
	load();
	for (int step = 0;; step++) {
		/* What makes the account's clock tick. */
		free(host[step % 256]);
		host[step % 256] = malloc(100000 + (size_t)step % 7 * 1000);
		work();
		fill_cache(step);
		if (step % 3 == 0)
			lose_device();
		if (step % 4 == 0)
			lose_async();
		if (step % 5 == 0)
			lose_pinned();
		nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
	}
}
