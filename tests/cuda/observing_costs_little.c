/* SPDX-License-Identifier: MIT */
/*
 * What watching adds to an allocation and to a free. The same process calls the driver's own functions
 * and the hooks, turn by turn in batches of 16 blocks; of each the least time of all batches counts, in
 * which nobody else had the processor. Times are printed; what is judged is only
 * what the driver is asked besides: the context of an allocation, nothing of a
 * free, nothing at all where the hooks are off.
 */
/* libs: libcuda.so.1 */
/* preload: none */
#include "tests/cuda/modes.h"

#define BATCHES 4000
#define BLOCKS 16

typedef CUresult (*alloc_fn)(CUdeviceptr *, size_t);
typedef CUresult (*free_fn)(CUdeviceptr);

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

struct way {
	alloc_fn alloc;
	free_fn free;
	uint64_t least_alloc, least_free, calls; /* of a batch */
};

static void batch(struct way *w)
{
	CUdeviceptr p[BLOCKS];
	uint64_t calls = tmfake_calls(NULL), start = now_ns(), between, end;
	int k;
	for (k = 0; k < BLOCKS; k++)
		if (w->alloc(&p[k], 4096) != CUDA_SUCCESS)
			exit(2);
	between = now_ns();
	for (k = 0; k < BLOCKS; k++)
		if (w->free(p[k]) != CUDA_SUCCESS)
			exit(2);
	end = now_ns();
	w->calls += tmfake_calls(NULL) - calls;
	if (between - start < w->least_alloc)
		w->least_alloc = between - start;
	if (end - between < w->least_free)
		w->least_free = end - between;
}

/* The question that an allocation asks the driver. */
static uint64_t least_of_question(void)
{
	uint64_t least = UINT64_MAX, took;
	CUcontext ctx;
	int i, k;
	for (i = 0; i < BATCHES; i++) {
		took = now_ns();
		for (k = 0; k < BLOCKS; k++)
			cuCtxGetCurrent(&ctx);
		took = now_ns() - took;
		least = took < least ? took : least;
	}
	return least / BLOCKS;
}

static void *own(const char *name)
{
	void *fn = NULL;
	int status;
	ok(tmfake_lookup(name, &fn, 13000, 0, &status));
	return fn;
}

static int part(void)
{
	struct way bare = {NULL, NULL, UINT64_MAX, UINT64_MAX, 0};
	struct way hooks = {cuMemAlloc_v2, cuMemFree_v2, UINT64_MAX, UINT64_MAX, 0};
	void *fn;
	int i;
	claim_context();
	fn = own("cuMemAlloc");
	memcpy(&bare.alloc, &fn, sizeof(fn));
	fn = own("cuMemFree");
	memcpy(&bare.free, &fn, sizeof(fn));
	for (i = 0; i < BATCHES; i++) {
		batch(&bare);
		batch(&hooks);
	}
	printf("%llu %llu %lld %lld %llu %llu\n", (unsigned long long)bare.least_alloc / BLOCKS,
	       (unsigned long long)bare.least_free / BLOCKS,
	       (long long)(hooks.least_alloc - bare.least_alloc) / BLOCKS,
	       (long long)(hooks.least_free - bare.least_free) / BLOCKS,
	       (unsigned long long)(hooks.calls - bare.calls) * 100 / (BATCHES * BLOCKS),
	       (unsigned long long)least_of_question());
	return claim_end();
}

int main(int argc, char **argv)
{
	static const char *const modes[] = {"off", "observe"};
	static const unsigned long long more_calls[] = {0, 100};
	int m;
	(void)argv;
	if (argc > 1)
		return part();
	if (!TM_HAVE_CUDA)
		return claim_skip("built without the CUDA hooks");
	for (m = 0; m < 2; m++) {
		struct claim_output out;
		unsigned long long alloc_ns = 0, free_ns = 0, calls = 0, question = 0;
		long long alloc_more = 0, free_more = 0;
		int status;
		setenv("TIERMALLOC_CUDA", modes[m], 1);
		status = claim_again(getenv("TM_LIB"), "part", &out);
		claim(status == 0 &&
			      sscanf(out.text, "%llu %llu %lld %lld %llu %llu", &alloc_ns, &free_ns,
				     &alloc_more, &free_more, &calls, &question) == 6,
		      "%s: %d %s", modes[m], status, out.text);
		printf("%s: an allocation %llu ns %+lld, a free %llu ns %+lld; calls of its own in 100 pairs: %llu, "
		       "each %llu ns\n",
		       modes[m], alloc_ns, alloc_more, free_ns, free_more, calls, question);
		claim(calls == more_calls[m], "%llu", calls);
	}
	return claim_end();
}
