/* SPDX-License-Identifier: MIT */
/*
 * A capture that ends in an unusual way is over, too: its stream or context is destroyed, it was
 * invalidated, it never began. A pool that took it for under way would serve nobody from then on; one that
 * took one that goes on for over would end it.
 */
/* libs: libcuda.so.1 */
/* preload: none */
#include "tests/cuda/modes.h"

#include <pthread.h>

static const char *mode;
static CUcontext ctx;

/* Freed blocks come again without the driver. */
static void pools_serve(const char *after)
{
	CUdeviceptr p;
	uint64_t before;
	int i;
	for (i = 0; i < 4; i++) {
		ok(cuMemAlloc_v2(&p, 3 * MIB));
		ok(cuMemFree_v2(p));
	}
	before = tmfake_calls("cuMemAlloc_v2") + tmfake_calls("cuMemCreate");
	for (i = 0; i < 8; i++) {
		ok(cuMemAlloc_v2(&p, 3 * MIB));
		ok(cuMemFree_v2(p));
	}
	claim(modes_is(mode, "bare") ||
		      tmfake_calls("cuMemAlloc_v2") + tmfake_calls("cuMemCreate") == before,
	      "%s: nothing is kept after %s", mode, after);
}

static CUstream capturing(int how)
{
	CUstream s;
	ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	ok(cuStreamBeginCapture_v2(s, how));
	return s;
}

static void *end_elsewhere(void *stream)
{
	CUgraph graph;
	ok(cuCtxSetCurrent(ctx));
	gives(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, cuStreamEndCapture(stream, &graph));
	return NULL;
}

static void many(void)
{
	CUstream s[80];
	CUgraph graph;
	int i;
	for (i = 0; i < 80; i++)
		s[i] = capturing(CU_STREAM_CAPTURE_MODE_RELAXED);
	for (i = 0; i < 80; i++)
		ok(cuStreamEndCapture(s[i], &graph));
	for (i = 0; i < 80; i++)
		ok(cuStreamDestroy_v2(s[i]));
}

static void still_captures(CUstream s, const char *after)
{
	CUdeviceptr p;
	int status = 0;
	/* Relaxed: the calls are allowed, and what a pool adds to them would end it. */
	ok(cuMemAlloc_v2(&p, 3 * MIB));
	ok(cuMemFree_v2(p));
	ok(cuStreamIsCapturing(s, &status));
	claim(status == CU_STREAM_CAPTURE_STATUS_ACTIVE, "%s: over after %s", mode, after);
}

static void body(const char *name)
{
	CUcontext other;
	CUgraph graph;
	CUstream s;
	pthread_t thread;
	CUdeviceptr p;
	mode = name;
	ctx = claim_context();
	pools_serve("nothing");
	s = capturing(CU_STREAM_CAPTURE_MODE_GLOBAL);
	ok(cuStreamDestroy_v2(s));
	pools_serve("its stream's end");
	s = capturing(CU_STREAM_CAPTURE_MODE_GLOBAL);
	gives(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuCtxSynchronize());
	gives(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, &graph));
	ok(cuStreamDestroy_v2(s));
	pools_serve("an invalidation");
	claim(cuStreamBeginCapture_v2(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL) != CUDA_SUCCESS);
	claim(cuStreamEndCapture(NULL, &graph) != CUDA_SUCCESS);
	pools_serve("a refused beginning");
	s = capturing(CU_STREAM_CAPTURE_MODE_RELAXED);
	claim(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED) != CUDA_SUCCESS);
	still_captures(s, "a second beginning");
	claim(cuStreamEndCapture(s, NULL) != CUDA_SUCCESS);
	still_captures(s, "an end without a place for the graph");
	ok(cuStreamEndCapture(s, &graph));
	ok(cuStreamDestroy_v2(s));
	s = capturing(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
	if (pthread_create(&thread, NULL, end_elsewhere, s) != 0)
		exit(2);
	pthread_join(thread, NULL);
	ok(cuStreamEndCapture(s, &graph));
	ok(cuStreamDestroy_v2(s));
	pools_serve("another thread's attempt");
	many();
	pools_serve("eighty at once");
	ok(cuCtxCreate_v2(&other, 0, 0));
	ok(cuMemAlloc_v2(&p, 3 * MIB));
	capturing(CU_STREAM_CAPTURE_MODE_RELAXED);
	ok(cuCtxDestroy_v2(other));
	ok(cuCtxSetCurrent(ctx));
	pools_serve("its context's end");
	claim(tmfake_misuse() == 0);
}

int main(int argc, char **argv)
{
	return modes_run(argc, argv, body, MODE_BARE | MODES_POOL | MODE_EVENT);
}
