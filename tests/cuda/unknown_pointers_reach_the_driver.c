/* SPDX-License-Identifier: MIT */
/*
 * Pointers that the pools don't know, and mistakes, get the driver's own answer: memory of streams,
 * graphs and other ways freed by cuMemFree, what is freed twice, addresses inside of a block, nonsense
 * (HAMi-core#257, #93, #67).
 */
/* libs: libcuda.so.1 */
/* preload: none */
#include "tests/cuda/modes.h"

static void body(const char *mode)
{
	CUDA_MEM_ALLOC_NODE_PARAMS node = {.poolProps = {.allocType = 1, .location = {1, 0}},
					   .bytesize = MIB};
	CUdeviceptr p, q[8];
	CUgraph graph;
	CUgraphNode first;
	CUstream s;
	uint64_t live;
	int i;
	(void)mode;
	claim_context();
	ok(cuStreamCreate(&s, 0));
	ok(cuMemAlloc_v2(&p, 3 * MIB));
	ok(cuMemFree_v2(p));
	live = tmfake_live();
	ok(cuMemAllocAsync(&p, MIB, s));
	claim(tmfake_live() == live + 1);
	ok(cuMemFree_v2(p));
	claim(tmfake_live() == live);
	gives(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(p));
	ok(cuGraphCreate(&graph, 0));
	ok(cuGraphAddMemAllocNode(&first, graph, NULL, 0, &node));
	ok(cuMemFree_v2(node.dptr));
	claim(tmfake_live() == live);
	for (i = 0; i < 8; i++)
		ok(cuMemAlloc_v2(&q[i], 4096));
	gives(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(q[3] + 512));
	ok(cuMemFree_v2(q[3]));
	gives(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(q[3]));
	gives(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(q[3] + 256));
	gives(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(0));
	gives(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(0x1234));
	gives(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(q[3], s));
	/* A block may be freed in the order of a stream; then it is gone. */
	ok(cuMemFreeAsync(q[4], s));
	gives(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(q[4]));
	ok(cuMemAlloc_v2(&q[3], 4096));
	ok(cuMemAlloc_v2(&q[4], 4096));
	for (i = 0; i < 8; i++) {
		int k;
		for (k = 0; k < i; k++)
			claim(q[i] != q[k], "%d and %d are one", i, k);
		ok(tmfake_fill(s, q[i], (uint32_t)i, 1024, 0));
	}
	ok(cuStreamSynchronize(s));
	for (i = 0; i < 8; i++)
		claim(claim_wrong(q[i], (uint32_t)i, 1024) == 0);
	for (i = 0; i < 8; i++)
		ok(cuMemFree_v2(q[i]));
	claim(tmfake_misuse() == 0);
}

int main(int argc, char **argv)
{
	return modes_run(argc, argv, body, MODES_ALL);
}
