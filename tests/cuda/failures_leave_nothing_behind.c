/* SPDX-License-Identifier: MIT */
/*
 * Whatever call of the driver fails, once, at any place, the program gets an error or its memory, and
 * nothing is lost: after the context's end the device is empty (HAMi-core#306). Devices without virtual
 * memory, memory pools or context events are served without them.
 */
/* libs: libcuda.so.1 */
/* preload: none */
/* env: TMFAKE_CAPACITY=256M TMFAKE_STRICT=1 */
#include "tests/cuda/modes.h"

static const char *const calls[] = {
	"cuMemAlloc_v2",
	"cuMemFree_v2",
	"cuCtxSynchronize",
	"cuCtxRecordEvent",
	"cuEventCreate",
	"cuEventQuery",
	"cuEventSynchronize",
	"cuMemAddressReserve",
	"cuMemCreate",
	"cuMemMap",
	"cuMemSetAccess",
	"cuMemUnmap",
	"cuMemRelease",
	"cuMemAddressFree",
	"cuCtxGetCurrent",
	"cuCtxGetDevice",
	"cuMemGetInfo_v2",
	"cuDeviceGetAttribute",
	"cuCtxPushCurrent_v2",
	"cuCtxPopCurrent_v2",
	"cuMemGetAllocationGranularity",
	"cuDeviceTotalMem_v2",
	"cuEventDestroy_v2",
	"cuMemGetAddressRange_v2",
	"cuMemHostAlloc",
	"cuMemFreeHost",
};

static void use(CUstream s, unsigned seed)
{
	CUdeviceptr p[12];
	void *host[3];
	int i, k;
	memset(p, 0, sizeof(p));
	memset(host, 0, sizeof(host));
	for (k = 0; k < 36; k++) {
		i = (int)((seed + (unsigned)k * 5) % 12);
		if (p[i] != 0 && cuMemFree_v2(p[i]) == CUDA_SUCCESS)
			p[i] = 0;
		if (p[i] == 0 &&
		    cuMemAlloc_v2(&p[i], (size_t)(1 + (k + i) % 7) * MIB) != CUDA_SUCCESS)
			p[i] = 0;
		if (p[i] != 0)
			ok(tmfake_fill(s, p[i], 1, 64, 20000));
		if (host[k % 3] != 0 && cuMemFreeHost(host[k % 3]) == CUDA_SUCCESS)
			host[k % 3] = NULL;
		if (host[k % 3] == NULL && cuMemHostAlloc(&host[k % 3], 8192, 0) != CUDA_SUCCESS)
			host[k % 3] = NULL;
	}
	for (i = 0; i < 12; i++)
		if (p[i] != 0 && cuMemFree_v2(p[i]) != CUDA_SUCCESS)
			cuMemFree_v2(p[i]);
	for (i = 0; i < 3; i++)
		if (host[i] != NULL && cuMemFreeHost(host[i]) != CUDA_SUCCESS)
			cuMemFreeHost(host[i]);
}

static void body(const char *mode)
{
	static const unsigned nth[] = {1, 2, 3, 7};
	size_t c, n;
	for (c = 0; c < sizeof(calls) / sizeof(calls[0]); c++)
		for (n = 0; n < 4; n++) {
			CUcontext made;
			CUstream s;
			uint64_t before;
			ok(cuInit(0));
			before = tmfake_used(0);
			ok(cuCtxCreate_v2(&made, 0, 0));
			ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
			ok(tmfake_fail(calls[c], nth[n],
				       n % 2 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_UNKNOWN));
			use(s, (unsigned)(c * 31 + n));
			/* A call that was never made must not fail later. */
			tmfake_forgive();
			ok(cuCtxDestroy_v2(made));
			/* What the driver refused to take back it keeps, with or without the library. */
			bool refused = strcmp(calls[c], "cuMemUnmap") == 0 ||
				       strcmp(calls[c], "cuMemRelease") == 0;
			claim(tmfake_used(0) <= before + (refused ? 8 * MIB : 0),
			      "%s: %s, call %u: %llu MiB stay", mode, calls[c], nth[n],
			      (unsigned long long)tmfake_used(0) / MIB);
			claim(tmfake_misuse() == 0, "%s: %s, call %u", mode, calls[c], nth[n]);
		}
}

int main(int argc, char **argv)
{
	return modes_run(argc, argv, body, MODES_ALL);
}
