/* SPDX-License-Identifier: MIT */
/*
 * Memory shared with another process: the handle is the driver's, base plus offset leads the other to
 * the same bytes, each way. What has no handle of its own, a part of a slab or stitched memory, is
 * refused as the driver refuses it and never answered with another block's handle (UCX#11724,
 * Mooncake#1622, #3546, vllm#42609). A peer that is killed harms nobody (HAMi-core#241).
 */
/* libs: libcuda.so.1 */
/* preload: none */
#include "tests/cuda/modes.h"

#define BLOCKS 12

struct offer {
	CUipcMemHandle handle;
	size_t offset, bytes;
	uint32_t value;
};

static void other_side(int from, int to)
{
	struct offer o;
	char done = 'd';
	claim_context();
	while (read(from, &o, sizeof(o)) == (ssize_t)sizeof(o)) {
		CUdeviceptr base;
		ok(cuIpcOpenMemHandle_v2(&base, o.handle, 1));
		claim(claim_wrong(base + o.offset, o.value, o.bytes / 4) == 0, "other bytes");
		ok(cuMemsetD32_v2(base + o.offset, ~o.value, o.bytes / 4));
		ok(cuCtxSynchronize());
		gives(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(base));
		ok(cuIpcCloseMemHandle(base));
		gives(CUDA_ERROR_INVALID_VALUE, cuIpcCloseMemHandle(base));
		if (write(to, &done, 1) != 1)
			break;
	}
	_exit(claim_end());
}

/* Offers one block; false where no handle is given, which only parts and stitched memory may see. */
static bool offer(CUdeviceptr p, size_t bytes, uint32_t value, const char *mode, int to, int from)
{
	struct offer o = {.bytes = bytes, .value = value};
	CUdeviceptr base;
	char done;
	CUresult rc;
	ok(cuMemsetD32_v2(p, value, bytes / 4));
	ok(cuCtxSynchronize());
	rc = cuIpcGetMemHandle(&o.handle, p);
	if (rc != CUDA_SUCCESS) {
		claim(rc == CUDA_ERROR_INVALID_VALUE, "%d", rc);
		claim(modes_is(mode, "slab") || modes_is(mode, "vmm") || modes_is(mode, "auto"),
		      "%s refused", mode);
		return false;
	}
	ok(cuMemGetAddressRange_v2(&base, NULL, p));
	o.offset = p - base;
	claim(write(to, &o, sizeof(o)) == (ssize_t)sizeof(o));
	claim(read(from, &done, 1) == 1, "%s: the other side ended", mode);
	claim(claim_wrong(p, ~value, bytes / 4) == 0, "%s: what the other wrote is not here", mode);
	return true;
}

static void body(const char *mode)
{
	static const size_t sizes[] = {512, 4096, 70000, MIB, 3 * MIB, 20 * MIB};
	CUdeviceptr p[BLOCKS];
	CUipcMemHandle a, b;
	int there[2], back[2], i, given = 0, status = 0;
	pid_t child;
	if (pipe(there) != 0 || pipe(back) != 0)
		exit(2);
	child = fork();
	if (child == 0) {
		close(there[1]);
		other_side(there[0], back[1]);
	}
	close(there[0]);
	close(back[1]);
	claim_context();
	for (i = 0; i < BLOCKS; i++)
		ok(cuMemAlloc_v2(&p[i], sizes[i % 6]));
	for (i = 0; i < BLOCKS; i++) {
		ok(cuMemFree_v2(p[i]));
		ok(cuMemAlloc_v2(&p[i], sizes[i % 6]));
	}
	for (i = 0; i < BLOCKS; i++)
		given += offer(p[i], sizes[i % 6] & ~(size_t)3, 0x1000u + (unsigned)i, mode,
			       there[1], back[0]);
	if (modes_is(mode, "bare") || modes_is(mode, "off") || modes_is(mode, "observe") ||
	    modes_is(mode, "cache"))
		claim(given == BLOCKS, "%s: %d of %d", mode, given, BLOCKS);
	/* After a free and an allocation the handle is another one. */
	if (cuIpcGetMemHandle(&a, p[5]) == CUDA_SUCCESS) {
		ok(cuMemFree_v2(p[5]));
		ok(cuMemAlloc_v2(&p[5], sizes[5]));
		if (cuIpcGetMemHandle(&b, p[5]) == CUDA_SUCCESS)
			claim(memcmp(&a, &b, sizeof(a)) != 0, "%s: the old handle", mode);
	}
	gives(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&a, 0x1234));
	gives(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(NULL, p[0]));
	close(there[1]);
	waitpid(child, &status, 0);
	claim(status == 0, "the other side: %x", (unsigned)status);
	/* Another peer is killed while it holds a block. */
	child = fork();
	if (child == 0)
		for (;;)
			pause();
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	for (i = 0; i < BLOCKS; i++)
		ok(cuMemFree_v2(p[i]));
	ok(cuMemAlloc_v2(&p[0], MIB));
	ok(cuMemFree_v2(p[0]));
	claim(tmfake_misuse() == 0);
}

int main(int argc, char **argv)
{
	return modes_run(argc, argv, body, MODES_ALL);
}
