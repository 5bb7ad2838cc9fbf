/* SPDX-License-Identifier: MIT */
/*
 * Who registers a block with a network card (dma-buf, block id) needs a base of 64 KiB (Mooncake#2035),
 * memory that may be registered (vllm#29569), and the same memory at that address for as long as it is
 * registered: an address that was handed out never shows other memory later (torch_memory_saver#88).
 */
/* libs: libcuda.so.1 */
/* preload: none */
/* env: TMFAKE_CAPACITY=1G */
#include "tests/cuda/modes.h"

#define SEEN 400

static struct {
	CUdeviceptr at;
	uint64_t id;
} seen[SEEN];
static int used;

static uint64_t block_id(CUdeviceptr at)
{
	uint64_t id = 0;
	ok(cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, at));
	return id;
}

static void register_block(CUdeviceptr p, size_t bytes, const char *mode)
{
	int fd = -1, capable = 0, legacy = 1;
	size_t whole = bytes & ~(size_t)0xffff;
	CUresult rc;
	claim(p % 0x10000 == 0, "%s: %llx for %zu bytes", mode, p, bytes);
	ok(cuPointerGetAttribute(&capable, CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, p));
	claim(capable == 1, "%s: not for RDMA", mode);
	rc = cuMemGetHandleForAddressRange(&fd, p, whole, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
	claim(rc == CUDA_SUCCESS || modes_is(mode, "vmm") || modes_is(mode, "auto"), "%s: %d", mode,
	      rc);
	if (rc != CUDA_SUCCESS)
		return;
	close(fd);
	/* The driver may use an address of its own again; a pool that maps memory itself must not. */
	ok(cuPointerGetAttribute(&legacy, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, p));
	if (used < SEEN && legacy == 0) {
		seen[used].at = p;
		seen[used++].id = block_id(p);
	}
}

static void body(const char *mode)
{
	CUdeviceptr p[16];
	int i, k, n;
	claim_context();
	memset(p, 0, sizeof(p));
	for (k = 0; k < 12; k++) {
		for (i = 0; i < 16; i++) {
			size_t bytes = (size_t)((i * 7 + k * 5) % 9 + 1) * 2 * MIB;
			if (p[i] != 0)
				ok(cuMemFree_v2(p[i]));
			ok(cuMemAlloc_v2(&p[i], bytes));
			for (n = 0; n < used; n++)
				if (p[i] == seen[n].at)
					claim(block_id(p[i]) == seen[n].id,
					      "%s: other memory at %llx", mode, p[i]);
			if (i % 4 == 0)
				register_block(p[i], bytes, mode);
		}
	}
	for (i = 0; i < 16; i++)
		ok(cuMemFree_v2(p[i]));
}

int main(int argc, char **argv)
{
	return modes_run(argc, argv, body, MODES_ALL);
}
