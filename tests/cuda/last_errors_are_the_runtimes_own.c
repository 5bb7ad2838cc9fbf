/* SPDX-License-Identifier: MIT */
/*
 * What the library tries again below the runtime leaves no error behind in it (cub#47); an error that
 * the program gets is the last error once.
 */
/* libs: libcudart_static.a libcuda.so.1 */
/* preload: none */
/* env: TMFAKE_CAPACITY=256M */
#include "tests/cuda/modes.h"

#include "tests/cuda/fakert/cudart.h"

static void body(const char *mode)
{
	void *p[8], *big = NULL;
	int i, round;
	(void)mode;
	for (round = 0; round < 3; round++) {
		for (i = 0; i < 8; i++)
			ok(cudaMalloc(&p[i], 24 * MIB));
		for (i = 0; i < 8; i++)
			ok(cudaFree(p[i]));
		ok(cudaMalloc(&big, 220 * MIB));
		claim(cudaGetLastError() == cudaSuccess, "%s: something is left", mode);
		gives(cudaErrorMemoryAllocation, cudaMalloc(&p[0], 220 * MIB));
		claim(cudaGetLastError() == cudaErrorMemoryAllocation);
		claim(cudaGetLastError() == cudaSuccess);
		ok(cudaFree(big));
	}
	gives(cudaErrorInvalidValue, cudaFree((void *)0x1234));
	claim(cudaPeekAtLastError() == cudaErrorInvalidValue);
	(void)cudaGetLastError();
	ok(cudaMalloc(&p[0], 0));
	claim(p[0] == NULL, "no bytes, no pointer");
	ok(cudaFree(NULL));
	claim(cudaGetLastError() == cudaSuccess);
}

int main(int argc, char **argv)
{
	return modes_run(argc, argv, body, MODES_ALL);
}
