/* SPDX-License-Identifier: MIT */
/*
 * What watching adds to a pair of allocation and free, against the same calls bare: the least of seven
 * turns each, alternating. Times are printed; what is judged is only that nothing grows out of bounds.
 */
/* libs: libcuda.so.1 */
/* preload: none */
#include "tests/cuda/modes.h"

#define PAIRS 20000

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t pairs(void)
{
	CUdeviceptr p[16];
	uint64_t start = now_ns();
	int i, k;
	for (i = 0; i < PAIRS / 16; i++) {
		for (k = 0; k < 16; k++)
			if (cuMemAlloc_v2(&p[k], 4096) != CUDA_SUCCESS)
				exit(2);
		for (k = 0; k < 16; k++)
			if (cuMemFree_v2(p[k]) != CUDA_SUCCESS)
				exit(2);
	}
	return (now_ns() - start) / PAIRS;
}

static int part(void)
{
	uint64_t best = UINT64_MAX, took, calls;
	int i;
	claim_context();
	pairs();
	calls = tmfake_calls(NULL);
	for (i = 0; i < 7; i++) {
		took = pairs();
		best = took < best ? took : best;
	}
	calls = (tmfake_calls(NULL) - calls) * 100 / 7 / PAIRS;
	printf("%llu ns %llu calls\n", (unsigned long long)best, (unsigned long long)calls);
	return claim_end();
}

int main(int argc, char **argv)
{
	static const char *const modes[] = {"bare", "off", "observe"};
	uint64_t ns[3] = {UINT64_MAX, UINT64_MAX, UINT64_MAX}, calls[3] = {0, 0, 0};
	int turn, m;
	(void)argv;
	if (argc > 1)
		return part();
	if (!TM_HAVE_CUDA)
		return claim_skip("built without the CUDA hooks");
	for (turn = 0; turn < 3; turn++)
		for (m = 0; m < 3; m++) {
			struct claim_output out;
			unsigned long long took = 0, made = 0;
			setenv("TIERMALLOC_CUDA", m == 0 ? "off" : modes[m], 1);
			int status = claim_again(m == 0 ? "" : getenv("TM_LIB"), "part", &out, 30);
			claim(status == 0 &&
				      sscanf(out.text, "%llu ns %llu calls", &took, &made) == 2,
			      "%s: %d %s", modes[m], status, out.text);
			ns[m] = took < ns[m] ? took : ns[m];
			calls[m] = made;
		}
	printf("a pair: bare %llu ns, off %+lld, observe %+lld (two calls); driver calls in 100 pairs: %llu, %llu, "
	       "%llu\n",
	       (unsigned long long)ns[0], (long long)(ns[1] - ns[0]), (long long)(ns[2] - ns[0]),
	       (unsigned long long)calls[0], (unsigned long long)calls[1],
	       (unsigned long long)calls[2]);
	claim(ns[2] < ns[0] + 2000, "observing adds %llu ns to a pair",
	      (unsigned long long)(ns[2] - ns[0]));
	claim(calls[1] == calls[0], "off makes calls of its own");
	return claim_end();
}
