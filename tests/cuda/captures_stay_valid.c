/* SPDX-License-Identifier: MIT */
/*
 * Capturing a stream into a graph goes on while others allocate and free, and while the capturing
 * thread itself does where its mode lets it: the library adds no wait, no query and no event to what
 * the program calls (pytorch#159594, #187795, #193982). Where the mode forbids it the driver's own
 * error comes.
 */
/* libs: libcuda.so.1 */
/* preload: none */
/* env: TMFAKE_CAPACITY=256M */
#include "tests/cuda/modes.h"

#include <pthread.h>

static CUcontext ctx;
static CUdeviceptr kept;

static void churn(void)
{
	CUdeviceptr p[4];
	CUstream s;
	int i, k;
	ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	for (k = 0; k < 50; k++) {
		for (i = 0; i < 4; i++) {
			ok(cuMemAlloc_v2(&p[i], (size_t)(i + 1) * 3 * MIB));
			ok(tmfake_fill(s, p[i], 9, 16, 3 * MS));
		}
		for (i = 0; i < 4; i++)
			ok(cuMemFree_v2(p[i]));
	}
	ok(cuStreamDestroy_v2(s));
}

static void *other_thread(void *unused)
{
	ok(cuCtxSetCurrent(ctx));
	churn();
	return unused;
}

static void capture(int mode, void (*meanwhile)(void))
{
	CUstream s;
	CUgraph graph = NULL;
	CUgraphExec exec;
	int status = 0;
	ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	ok(cuStreamBeginCapture_v2(s, mode));
	ok(cuMemsetD32Async(kept, 77, 1024, s));
	meanwhile();
	ok(cuStreamIsCapturing(s, &status));
	claim(status == CU_STREAM_CAPTURE_STATUS_ACTIVE, "the capture was invalidated");
	ok(cuMemsetD32Async(kept + 4096, 78, 1024, s));
	ok(cuStreamEndCapture(s, &graph));
	if (graph == NULL)
		return;
	ok(cuGraphInstantiateWithFlags(&exec, graph, 0));
	ok(cuGraphLaunch(exec, s));
	ok(cuStreamSynchronize(s));
	claim(claim_wrong(kept, 77, 1024) == 0 && claim_wrong(kept + 4096, 78, 1024) == 0);
	ok(cuGraphExecDestroy(exec));
	ok(cuGraphDestroy(graph));
	ok(cuStreamDestroy_v2(s));
}

static void beside(void)
{
	pthread_t thread;
	if (pthread_create(&thread, NULL, other_thread, NULL) == 0)
		pthread_join(thread, NULL);
}

/* Memory is short: what a pool would have to give back first can't be waited for here. */
static void short_of_memory(void)
{
	CUdeviceptr p = 0, q = 0;
	CUresult rc = cuMemAlloc_v2(&p, 100 * MIB);
	claim(rc == CUDA_SUCCESS || rc == CUDA_ERROR_OUT_OF_MEMORY, "%d", rc);
	gives(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(&q, 512 * MIB));
	if (rc == CUDA_SUCCESS)
		ok(cuMemFree_v2(p));
}

static void forbidden(void)
{
	CUdeviceptr p, q;
	CUstream s;
	CUgraph graph = NULL;
	ok(cuStreamCreate(&s, 0));
	ok(cuMemAlloc_v2(&q, 3 * MIB));
	ok(cuMemAlloc_v2(&p, 3 * MIB));
	ok(cuMemFree_v2(p));
	ok(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	gives(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemAlloc_v2(&p, 3 * MIB));
	gives(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, &graph));
	claim(graph == NULL);
	ok(cuMemAlloc_v2(&p, 3 * MIB));
	ok(cuMemFree_v2(p));
	ok(cuMemFree_v2(q));
	ok(cuStreamDestroy_v2(s));
}

static void body(const char *mode)
{
	(void)mode;
	ctx = claim_context();
	ok(cuMemAlloc_v2(&kept, 8192));
	churn();
	capture(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, beside);
	capture(CU_STREAM_CAPTURE_MODE_RELAXED, churn);
	capture(CU_STREAM_CAPTURE_MODE_RELAXED, beside);
	capture(CU_STREAM_CAPTURE_MODE_RELAXED, short_of_memory);
	forbidden();
	churn();
	ok(cuMemFree_v2(kept));
	claim(tmfake_misuse() == 0);
}

int main(int argc, char **argv)
{
	return modes_run(argc, argv, body, MODES_ALL);
}
