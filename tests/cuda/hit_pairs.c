/* SPDX-License-Identifier: MIT */
/*
 * Pairs of an allocation and a free that a pool serves: N of them, after enough that the call site has
 * earned whatever it can earn. hits_take_few_instructions counts them; "N time" prints how long the
 * hits took in ns, less the clock: the median, the 99th percentile, their share. One and the same size, or,
 * with "N time varied", 64 sizes of 2 to 8 MiB in turn among 32 blocks that stay. An allocation for which the
 * driver had to make or map something is no hit.
 */
/* libs: libcuda.so.1 */
/* run: none */
#include "tests/cuda/claim.h"

#define WARM 2000
#define MOST 100000

static uint32_t took[MOST];
static CUdeviceptr kept[32];

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

static uint64_t made(void)
{
	return tmfake_calls("cuMemAlloc_v2") + tmfake_calls("cuMemMap");
}

static uint32_t timed(CUdeviceptr *at, size_t bytes)
{
	uint64_t before = now_ns();
	ok(cuMemAlloc_v2(at, bytes));
	return (uint32_t)(now_ns() - before);
}

static size_t size_of(int i, bool varied)
{
	return varied ? 2 * MIB + (size_t)(i * 37 % 64) * 98304 : 4 * MIB;
}

static void pairs(int n)
{
	CUdeviceptr at = 0;
	int i;
	for (i = 0; i < n; i++) {
		ok(cuMemAlloc_v2(&at, 4 * MIB));
		ok(cuMemFree_v2(at));
	}
}

static void pairs_timed(int n, bool varied)
{
	uint64_t before, calls;
	int i, clock, hits = 0;
	for (i = 0; i < 1001; i++) {
		before = now_ns();
		took[i] = (uint32_t)(now_ns() - before);
	}
	qsort(took, 1001, sizeof(took[0]), by_value);
	clock = (int)took[500];
	for (i = -WARM; i < n; i++) {
		CUdeviceptr *at = &kept[(unsigned)i % (varied ? 32 : 1)];
		uint32_t ns;
		if (*at != 0)
			ok(cuMemFree_v2(*at));
		calls = made();
		ns = timed(at, size_of(i & 0xffff, varied));
		if (i >= 0 && made() == calls)
			took[hits++] = ns;
	}
	if (hits == 0) {
		printf("0 0 0\n");
		return;
	}
	qsort(took, (size_t)hits, sizeof(took[0]), by_value);
	printf("%d %d %.2f\n", (int)took[hits / 2] - clock, (int)took[hits * 99 / 100] - clock,
	       100.0 * hits / n);
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1000;
	if (n < 1 || n > MOST)
		return 2;
	claim_context();
	if (argc > 2)
		pairs_timed(n, argc > 3);
	else
		pairs(n);
	return claim_end();
}
