/* SPDX-License-Identifier: MIT */
/*
 * What a program does wrong, or seldom does, is answered by a pool as by the driver: the same steps in
 * every mode, their results compared with the bare driver's, one by one. Frees of nothing, twice, inside of
 * a block, of another context's memory, after the context's end, without one; host and device pointers
 * mixed up; sizes that cannot be; streams that are none.
 */
/* libs: libcuda.so.1 */
/* preload: none */
/* env: TMFAKE_DEVICES=2 */
#include "tests/cuda/modes.h"

static FILE *file;
static int step;

#define note(call) fprintf(file, "%d %s: %d\n", ++step, #call, (int)(call))

static void *mapped(void)
{
	static unsigned char bytes[16384];
	return bytes + (4096 - (uintptr_t)bytes % 4096) % 4096;
}

static void frees(CUcontext ctx)
{
	CUdeviceptr p[24], q;
	CUcontext other;
	int i;
	for (i = 0; i < 24; i++)
		ok(cuMemAlloc_v2(&p[i], 3 * MIB));
	for (i = 12; i < 24; i++)
		ok(cuMemFree_v2(p[i]));
	note(cuMemFree_v2(0));
	note(cuMemFree_v2(p[0] + 512));
	note(cuMemFree_v2(p[0]));
	note(cuMemFree_v2(p[0]));
	note(cuMemFree_v2(p[23]));
	note(cuMemFree_v2(0x1234));
	note(cuMemFreeHost((void *)(uintptr_t)p[1]));
	note(cuMemAlloc_v2(&q, 0));
	note(cuMemAlloc_v2(&q, (size_t)1 << 50));
	note(cuMemAlloc_v2(&q, SIZE_MAX));
	note(cuMemAlloc_v2(NULL, 4096));
	/* Another context's, and none. */
	note(cuCtxCreate_v2(&other, 0, 1));
	note(cuMemFree_v2(p[2]));
	note(cuMemFree_v2(p[2]));
	note(cuMemAlloc_v2(&q, 3 * MIB));
	note(cuCtxSetCurrent(ctx));
	note(cuMemFree_v2(q));
	note(cuMemFree_v2(q));
	note(cuCtxSetCurrent(other));
	note(cuMemAlloc_v2(&q, 3 * MIB));
	note(cuCtxDestroy_v2(other));
	note(cuCtxSetCurrent(ctx));
	note(cuMemFree_v2(q));
	note(cuCtxSetCurrent(NULL));
	note(cuMemAlloc_v2(&q, 3 * MIB));
	note(cuMemFree_v2(p[3]));
	note(cuCtxSetCurrent(ctx));
	note(cuMemFree_v2(p[3]));
	note(cuMemFree_v2(p[3]));
	for (i = 4; i < 12; i++)
		note(cuMemFree_v2(p[i]));
	note(cuMemFree_v2(p[1]));
}

static void streams(void)
{
	CUdeviceptr p, q;
	CUstream s, gone;
	ok(cuStreamCreate(&s, 0));
	ok(cuStreamCreate(&gone, 0));
	ok(cuStreamDestroy_v2(gone));
	ok(cuMemAlloc_v2(&p, 3 * MIB));
	note(cuMemFreeAsync(p, gone));
	note(cuMemFreeAsync(p + 512, s));
	note(cuMemFreeAsync(p, s));
	note(cuMemFreeAsync(p, s));
	note(cuMemFree_v2(p));
	note(cuMemFreeAsync(0, s));
	note(cuMemAllocAsync(&q, 3 * MIB, s));
	note(cuMemFree_v2(q));
	note(cuMemFree_v2(q));
	note(cuMemAllocAsync(&q, 3 * MIB, gone));
	note(cuStreamDestroy_v2(gone));
	note(cuStreamDestroy_v2(s));
}

static void host(void)
{
	void *a, *b, *own = mapped();
	CUdeviceptr p;
	note(cuMemAllocHost_v2(&a, 100000));
	note(cuMemHostAlloc(&b, 100000, 2));
	note(cuMemFreeHost(NULL));
	note(cuMemFreeHost((char *)a + 4096));
	note(cuMemFree_v2((uintptr_t)a));
	note(cuMemFreeHost(a));
	note(cuMemFreeHost(a));
	note(cuMemFreeHost(b));
	note(cuMemFreeHost(b));
	note(cuMemFreeHost(own));
	note(cuMemAllocHost_v2(&a, 0));
	note(cuMemAllocHost_v2(NULL, 4096));
	note(cuMemHostAlloc(&a, 0, 0));
	note(cuMemHostAlloc(&a, 4096, 0x1000));
	note(cuMemHostRegister_v2(own, 4096, 0));
	note(cuMemHostRegister_v2(own, 4096, 0));
	note(cuMemFreeHost(own));
	note(cuMemHostUnregister(own));
	note(cuMemHostUnregister(own));
	note(cuMemHostUnregister(NULL));
	note(cuMemAlloc_v2(&p, 3 * MIB));
	note(cuMemHostUnregister((void *)(uintptr_t)p));
	note(cuIpcCloseMemHandle(p));
	note(cuMemUnmap(p, 2 * MIB));
	note(cuMemAddressFree(p, 2 * MIB));
	note(cuArrayDestroy((CUarray)(uintptr_t)p));
	note(cuMemFree_v2(p));
}

static void reset(void)
{
	CUdeviceptr p[4];
	CUcontext ctx;
	int i;
	for (i = 0; i < 4; i++)
		ok(cuMemAlloc_v2(&p[i], 3 * MIB));
	ok(cuMemFree_v2(p[3]));
	note(cuDevicePrimaryCtxReset(0));
	for (i = 0; i < 4; i++)
		note(cuMemFree_v2(p[i]));
	note(cuDevicePrimaryCtxRetain(&ctx, 0));
	note(cuCtxSetCurrent(ctx));
	for (i = 0; i < 4; i++)
		note(cuMemAlloc_v2(&p[i], 3 * MIB));
	for (i = 0; i < 4; i++)
		note(cuMemFree_v2(p[i]));
	note(cuDevicePrimaryCtxRelease(0));
	note(cuDevicePrimaryCtxRelease(0));
	note(cuMemAlloc_v2(&p[0], 3 * MIB));
}

static void body(const char *mode)
{
	char command[128];
	CUcontext ctx;
	file = fopen(mode, "we");
	if (file == NULL)
		exit(2);
	ctx = claim_context();
	frees(ctx);
	streams();
	host();
	reset();
	fclose(file);
	snprintf(command, sizeof(command), "diff bare '%s'", mode);
	claim(system(command) == 0, "%s", mode);
	printf("%s: %d steps, %llu live\n", mode, step, (unsigned long long)tmfake_misuse());
}

int main(int argc, char **argv)
{
	return modes_run(argc, argv, body, MODES_ALL);
}
