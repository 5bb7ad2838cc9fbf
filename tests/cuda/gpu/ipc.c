/* SPDX-License-Identifier: MIT */
/*
 * ipc   H7: two processes on one device. A whole block, blocks that may be parts, virtual memory; what
 * has a handle leads to its bytes by base and offset, what has none is refused.
 */
#include "tests/cuda/gpu/gpu.h"

#include <sys/wait.h>

struct offer {
	CUipcMemHandle handle;
	size_t offset;
	uint32_t value;
};

static int other_side(int from, int to)
{
	struct offer o;
	gpu_begin("H7");
	while (read(from, &o, sizeof(o)) == (ssize_t)sizeof(o)) {
		CUdeviceptr base = 0;
		size_t wrong = 1;
		CUresult rc = cuIpcOpenMemHandle_v2(&base, o.handle, 1);
		if (rc == CUDA_SUCCESS) {
			wrong = gpu_wrong(base + o.offset, o.value, 1024);
			rc = cuIpcCloseMemHandle(base);
		}
		if (write(to, &wrong, sizeof(wrong)) < 0 || write(to, &rc, sizeof(rc)) < 0)
			return 1;
	}
	return gpu_failures != 0;
}

static void offer(const char *what, CUdeviceptr p, uint32_t value, int to, int from)
{
	struct offer o = {.value = value};
	CUdeviceptr base = p;
	size_t wrong = 0;
	CUresult rc, there = 0;
	GPU_NEED("H7", gpu_fill(NULL, p, value, 1024, 0));
	GPU_NEED("H7", cuCtxSynchronize());
	rc = cuIpcGetMemHandle(&o.handle, p);
	if (rc == CUDA_SUCCESS) {
		cuMemGetAddressRange_v2(&base, NULL, p);
		o.offset = p - base;
		if (write(to, &o, sizeof(o)) < 0 || read(from, &wrong, sizeof(wrong)) < 0 ||
		    read(from, &there, sizeof(there)) < 0)
			wrong = 1;
	}
	/* Refused or right: never another block's bytes. */
	gpu_line("H7",
		 (rc != CUDA_SUCCESS || (wrong == 0 && there == CUDA_SUCCESS)) ? GPU_OK : GPU_BAD,
		 what,
		 ", \"mode\": \"%s\", \"rc\": %d, \"opened\": %d, \"wrong\": %zu, \"offset\": %zu",
		 getenv("TM_GPU_MODE") ? getenv("TM_GPU_MODE") : "bare", rc, there, wrong,
		 o.offset);
}

int main(int argc, char **argv)
{
	CUmemAllocationProp prop = {.type = 1, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0},
				  CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle h;
	CUdeviceptr p[8], va;
	int there[2], back[2], status = 0, i;
	pid_t child;
	if (argc > 2)
		return other_side(atoi(argv[1]), atoi(argv[2]));
	if (pipe(there) != 0 || pipe(back) != 0)
		return 1;
	child = fork();
	if (child == 0) {
		char from[16], to[16];
		close(there[1]);
		snprintf(from, sizeof(from), "%d", there[0]);
		snprintf(to, sizeof(to), "%d", back[1]);
		execl("/proc/self/exe", "ipc", from, to, (char *)NULL);
		_exit(127);
	}
	close(there[0]);
	close(back[1]);
	gpu_begin("H7");
	for (i = 0; i < 8; i++)
		GPU_NEED("H7", cuMemAlloc_v2(&p[i], i < 4 ? 65536 : 32 * MIB));
	for (i = 0; i < 8; i += 2) {
		GPU_NEED("H7", cuMemFree_v2(p[i]));
		GPU_NEED("H7", cuMemAlloc_v2(&p[i], i < 4 ? 65536 : 32 * MIB));
	}
	for (i = 0; i < 8; i++)
		offer(i < 4 ? "64 KiB" : "32 MiB", p[i], 0x7000u + (unsigned)i, there[1], back[0]);
	GPU_NEED("H7", cuMemAddressReserve(&va, 2 * MIB, 0, 0, 0));
	GPU_NEED("H7", cuMemCreate(&h, 2 * MIB, &prop, 0));
	GPU_NEED("H7", cuMemMap(va, 2 * MIB, 0, h, 0));
	GPU_NEED("H7", cuMemSetAccess(va, 2 * MIB, &access, 1));
	offer("virtual memory", va, 0x7777, there[1], back[0]);
	close(there[1]);
	waitpid(child, &status, 0);
	gpu_line("H7", status == 0 ? GPU_OK : GPU_BAD, "other process", ", \"status\": %d", status);
	return gpu_failures != 0;
}
