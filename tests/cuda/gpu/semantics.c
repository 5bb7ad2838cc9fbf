/* SPDX-License-Identifier: MIT */
/*
 * semantics facts     H4: what the driver really does: does a free wait, for what, and so on
 * semantics capture   H6: allocations and frees beside a capture, the graph replayed
 * semantics full      H13: a full device fails and recovers as without the library
 * semantics exit WAY  H14: leaving with live memory; fork before and after
 */
#include "tests/cuda/gpu/gpu.h"

#include <sys/wait.h>

static const char *mode(void)
{
	return getenv("TM_GPU_MODE") ? getenv("TM_GPU_MODE") : "bare";
}

/* --- H4 --------------------------------------------------------------------------------------- */

#define SPIN ((uint64_t)200000000)

static bool still_runs(CUstream s)
{
	return cuStreamQuery(s) == CUDA_ERROR_NOT_READY;
}

static void free_beside_a_kernel(const char *what, unsigned flags)
{
	CUstream s;
	CUdeviceptr p;
	GPU_NEED("H4", cuStreamCreate(&s, flags));
	GPU_NEED("H4", cuMemAlloc_v2(&p, 8 * MIB));
	GPU_NEED("H4", gpu_spin(s, SPIN));
	GPU_NEED("H4", cuMemFree_v2(p));
	gpu_line("H4", GPU_FACT, what, ", \"waits\": %s", still_runs(s) ? "false" : "true");
	GPU_NEED("H4", cuCtxSynchronize());
	GPU_NEED("H4", cuStreamDestroy_v2(s));
}

static void unmap_beside_a_kernel(void)
{
	CUmemAllocationProp prop = {.type = 1, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemGenericAllocationHandle h;
	CUdeviceptr va;
	CUstream s;
	GPU_NEED("H4", cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	GPU_NEED("H4", cuMemAddressReserve(&va, 2 * MIB, 0, 0, 0));
	GPU_NEED("H4", cuMemCreate(&h, 2 * MIB, &prop, 0));
	GPU_NEED("H4", cuMemMap(va, 2 * MIB, 0, h, 0));
	GPU_NEED("H4", gpu_spin(s, SPIN));
	GPU_NEED("H4", cuMemUnmap(va, 2 * MIB));
	gpu_line("H4", GPU_FACT, "cuMemUnmap waits", ", \"waits\": %s",
		 still_runs(s) ? "false" : "true");
	GPU_NEED("H4", cuMemRelease(h));
	GPU_NEED("H4", cuMemAddressFree(va, 2 * MIB));
	GPU_NEED("H4", cuCtxSynchronize());
}

static int facts(void)
{
	CUcontext ctx = gpu_begin("H4");
	CUdeviceptr p = 1, q;
	unsigned long long id = 0, again = 0;
	CUresult rc;
	free_beside_a_kernel("cuMemFree waits for a blocking stream", 0);
	free_beside_a_kernel("cuMemFree waits for a non-blocking stream", CU_STREAM_NON_BLOCKING);
	unmap_beside_a_kernel();
	gpu_line("H4", GPU_FACT, "cuMemFree of 0", ", \"rc\": %d", cuMemFree_v2(0));
	gpu_line("H4", GPU_FACT, "cuMemAlloc of 0 bytes", ", \"rc\": %d", cuMemAlloc_v2(&p, 0));
	GPU_NEED("H4", cuMemAlloc_v2(&p, 4 * MIB));
	GPU_NEED("H4", cuMemFree_v2(p));
	gpu_line("H4", GPU_FACT, "second free", ", \"rc\": %d", cuMemFree_v2(p));
	GPU_NEED("H4", cuMemAlloc_v2(&p, 4 * MIB));
	gpu_line("H4", GPU_FACT, "free of an address inside", ", \"rc\": %d",
		 cuMemFree_v2(p + 512));
	rc = cuCtxGetId(ctx, &id);
	GPU_NEED("H4", cuDevicePrimaryCtxReset_v2(0));
	gpu_line("H4", GPU_FACT, "free after reset, context still current", ", \"rc\": %d",
		 cuMemFree_v2(p));
	GPU_NEED("H4", cuDevicePrimaryCtxRetain(&ctx, 0));
	GPU_NEED("H4", cuCtxSetCurrent(ctx));
	if (rc == CUDA_SUCCESS)
		cuCtxGetId(ctx, &again);
	gpu_line("H4", GPU_FACT, "free after reset and retain", ", \"rc\": %d, \"new id\": %s",
		 cuMemFree_v2(p), id != again ? "true" : "false");
	GPU_NEED("H4", cuMemAlloc_v2(&q, 4 * MIB));
	gpu_line("H4", GPU_OK, "allocation after reset", ", \"same address\": %s",
		 p == q ? "true" : "false");
	return gpu_failures != 0;
}

/* --- H6 --------------------------------------------------------------------------------------- */

static void one_capture(int capture_mode, const char *what, bool expected)
{
	CUdeviceptr kept, p[8], warm[8];
	CUstream s;
	CUgraph graph = NULL;
	CUgraphExec exec;
	CUresult rc = 0;
	unsigned i;
	size_t wrong;
	GPU_NEED("H6", cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	GPU_NEED("H6", cuMemAlloc_v2(&kept, 65536));
	for (i = 0; i < 8; i++)
		GPU_NEED("H6", cuMemAlloc_v2(&warm[i], (i + 1) * MIB));
	for (i = 0; i < 8; i++)
		GPU_NEED("H6", cuMemFree_v2(warm[i]));
	GPU_NEED("H6", cuStreamBeginCapture_v2(s, capture_mode));
	GPU_NEED("H6", gpu_fill(s, kept, 77, 16384, 0));
	for (i = 0; i < 8 && rc == CUDA_SUCCESS; i++) {
		rc = cuMemAlloc_v2(&p[i], (i + 1) * MIB);
		if (rc == CUDA_SUCCESS)
			rc = cuMemFree_v2(p[i]);
	}
	CUresult ended = cuStreamEndCapture(s, &graph);
	bool valid = rc == CUDA_SUCCESS && ended == CUDA_SUCCESS && graph != NULL;
	if (valid) {
		GPU_NEED("H6", cuGraphInstantiateWithFlags(&exec, graph, 0));
		for (i = 0; i < 100; i++)
			GPU_NEED("H6", cuGraphLaunch(exec, s));
		GPU_NEED("H6", cuStreamSynchronize(s));
	}
	wrong = valid ? gpu_wrong(kept, 77, 16384) : 0;
	gpu_line("H6", valid == expected && wrong == 0 ? GPU_OK : GPU_BAD, what,
		 ", \"mode\": \"%s\", \"allocation\": %d, \"end\": %d, \"wrong\": %zu", mode(), rc,
		 ended, wrong);
	GPU_NEED("H6", cuMemFree_v2(kept));
}

static int capture(void)
{
	gpu_begin("H6");
	one_capture(CU_STREAM_CAPTURE_MODE_RELAXED, "relaxed", true);
	one_capture(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, "thread local", false);
	one_capture(CU_STREAM_CAPTURE_MODE_GLOBAL, "global", false);
	return gpu_failures != 0;
}

/* --- H13 -------------------------------------------------------------------------------------- */

static int full(void)
{
	static CUdeviceptr p[4096];
	size_t free_bytes, total, piece, n = 0, i, again = 0;
	CUdeviceptr big;
	CUmodule module;
	CUresult rc;
	gpu_begin("H13");
	GPU_NEED("H13", cuMemGetInfo_v2(&free_bytes, &total));
	piece = (free_bytes / 200) & ~(2 * MIB - 1);
	while (n < 4096 && (rc = cuMemAlloc_v2(&p[n], piece)) == CUDA_SUCCESS)
		n++;
	gpu_line("H13", rc == CUDA_ERROR_OUT_OF_MEMORY ? GPU_OK : GPU_BAD, "fills up",
		 ", \"mode\": \"%s\", \"pieces\": %zu, \"of\": %zu, \"rc\": %d", mode(), n, piece,
		 rc);
	for (i = 0; i < n; i += 2)
		GPU_NEED("H13", cuMemFree_v2(p[i]));
	rc = cuModuleLoadData(&module, gpu_ptx);
	gpu_line("H13", rc == CUDA_SUCCESS ? GPU_OK : GPU_BAD, "a module loads at low memory",
		 ", \"rc\": %d", rc);
	rc = cuMemAlloc_v2(&big, n / 2 * piece / 2);
	gpu_line("H13", rc == CUDA_SUCCESS ? GPU_OK : GPU_BAD,
		 "half of what was freed in one piece", ", \"mode\": \"%s\", \"rc\": %d", mode(),
		 rc);
	if (rc == CUDA_SUCCESS)
		GPU_NEED("H13", cuMemFree_v2(big));
	for (i = 0; i < n; i += 2)
		again += cuMemAlloc_v2(&p[i], piece) == CUDA_SUCCESS;
	gpu_line("H13", again == (n + 1) / 2 ? GPU_OK : GPU_BAD, "as many again",
		 ", \"mode\": \"%s\", \"pieces\": %zu", mode(), again);
	return gpu_failures != 0;
}

/* --- H14 -------------------------------------------------------------------------------------- */

static int leave(int way)
{
	CUdeviceptr p, q;
	int status = 0;
	pid_t child;
	if (way == 3) {
		child = fork();
		if (child == 0) {
			gpu_begin("H14");
			_exit(cuMemAlloc_v2(&p, MIB) != CUDA_SUCCESS);
		}
		waitpid(child, &status, 0);
		gpu_line("H14", status == 0 ? GPU_OK : GPU_BAD, "a child of a fork before cuInit",
			 ", \"status\": %d", status);
	}
	gpu_begin("H14");
	GPU_NEED("H14", cuMemAlloc_v2(&p, 8 * MIB));
	GPU_NEED("H14", cuMemAlloc_v2(&q, 8 * MIB));
	GPU_NEED("H14", cuMemFree_v2(q));
	if (way == 4) {
		child = fork();
		if (child == 0)
			_exit(cuMemAlloc_v2(&q, MIB) == CUDA_SUCCESS);
		waitpid(child, &status, 0);
		gpu_line("H14", status == 0 ? GPU_OK : GPU_BAD,
			 "a child of a fork after cuInit is refused", ", \"status\": %d", status);
	}
	gpu_line("H14", GPU_OK, "leaves", ", \"way\": %d", way);
	if (way == 1)
		_exit(0);
	if (way == 2)
		exit(0);
	return gpu_failures != 0;
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "facts") == 0)
		return facts();
	if (argc > 1 && strcmp(argv[1], "capture") == 0)
		return capture();
	if (argc > 1 && strcmp(argv[1], "full") == 0)
		return full();
	if (argc > 2 && strcmp(argv[1], "exit") == 0)
		return leave(atoi(argv[2]));
	return 2;
}
