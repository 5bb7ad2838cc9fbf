/* SPDX-License-Identifier: MIT */
/*
 * cuDevicePrimaryCtxReset, the last release and cuCtxDestroy take all memory of the context along,
 * cached memory too. The next context has the same handle and must get nothing of the old one's; old
 * pointers are the driver's to judge.
 */
/* libs: libcuda.so.1 */
/* preload: none */
/* env: TMFAKE_CAPACITY=512M TMFAKE_STRICT=1 */
#include "tests/cuda/modes.h"

static void use(CUdeviceptr *keep)
{
	CUdeviceptr p[8];
	int i, k;
	for (k = 0; k < 4; k++) {
		for (i = 0; i < 8; i++) {
			ok(cuMemAlloc_v2(&p[i], (size_t)(1 + i % 3) * 2 * MIB));
			ok(tmfake_fill(NULL, p[i], (uint32_t)i, 64 * 1024 / 4, 1 * MS));
		}
		ok(cuCtxSynchronize());
		for (i = 0; i < 8; i++)
			claim(claim_wrong(p[i], (uint32_t)i, 64 * 1024 / 4) == 0);
		for (i = 0; i < 8; i++)
			ok(cuMemFree_v2(p[i]));
	}
	ok(cuMemAlloc_v2(keep, 4 * MIB));
}

static void release_all(void)
{
	unsigned flags;
	int active = 1, turn;
	for (turn = 0; active; turn++) {
		ok(turn % 2 ? cuDevicePrimaryCtxRelease(0) : cuDevicePrimaryCtxRelease_v2(0));
		ok(cuDevicePrimaryCtxGetState(0, &flags, &active));
	}
}

/* As a library does that got the function where no hook was. */
static void retain_unseen(void)
{
	CUresult (*retain)(CUcontext *, CUdevice);
	CUcontext ctx;
	void *fn = NULL;
	int status;
	ok(tmfake_lookup("cuDevicePrimaryCtxRetain", &fn, 13000, 0, &status));
	memcpy(&retain, &fn, sizeof(fn));
	ok(retain(&ctx, 0));
	ok(cuCtxSetCurrent(ctx));
}

static void resets(const char *mode)
{
	CUdeviceptr old;
	int i;
	retain_unseen();
	for (i = 0; i < 3; i++) {
		use(&old);
		ok(cuDevicePrimaryCtxReset_v2(0));
		claim(tmfake_used(0) == 0, "%s: %llu MiB stay after reset %d", mode,
		      (unsigned long long)tmfake_used(0) / MIB, i);
		/* The same context goes on. */
	}
	release_all();
}

static void body(const char *mode)
{
	CUcontext ctx, made, first = NULL;
	CUdeviceptr old, p;
	int i;
	ok(cuInit(0));
	resets(mode);
	for (i = 0; i < 3; i++) {
		ctx = claim_context();
		use(&old);
		if (i == 0)
			ok(cuDevicePrimaryCtxReset(0));
		else if (i == 1)
			ok(cuDevicePrimaryCtxReset_v2(0));
		else
			release_all();
		claim(tmfake_used(0) == 0, "%s: %llu MiB stay after the end %d", mode,
		      (unsigned long long)tmfake_used(0) / MIB, i);
		ctx = claim_context();
		gives(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(old));
		(void)ctx;
	}
	for (i = 0; i < 5; i++) {
		ok(cuCtxCreate_v2(&made, 0, 0));
		claim(first == NULL || first == made, "the test needs the same handle");
		first = made;
		use(&old);
		ok(cuCtxDestroy_v2(made));
		claim(tmfake_used(0) == 0, "%s: %llu MiB stay", mode,
		      (unsigned long long)tmfake_used(0) / MIB);
	}
	/* A block of one context freed while another is current. */
	ctx = claim_context();
	ok(cuMemAlloc_v2(&p, 6 * MIB));
	ok(cuCtxCreate_v2(&made, 0, 0));
	ok(tmfake_fill(NULL, p, 1, 4, 0));
	ok(cuMemFree_v2(p));
	use(&old);
	ok(cuCtxDestroy_v2(made));
	use(&old);
	ok(cuMemFree_v2(old));
	claim(tmfake_misuse() == 0);
}

int main(int argc, char **argv)
{
	return modes_run(argc, argv, body, MODES_ALL);
}
