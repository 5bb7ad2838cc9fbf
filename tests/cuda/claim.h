/* SPDX-License-Identifier: MIT */
/* claim: what the programs of this suite share, on top of the preload suite's claims. */
#ifndef TM_TEST_CUDA_CLAIM_H
#define TM_TEST_CUDA_CLAIM_H

#include "tests/preload/claim.h"

#include "tests/cuda/cu.h"
#include "tests/cuda/fake/control.h"

/* A call that must succeed. */
#define ok(call)                                                                                   \
	do {                                                                                       \
		int ok_rc = (call);                                                                \
		claim(ok_rc == 0, "%s gave %d", #call, ok_rc);                                     \
	} while (0)

/* A call that must end so. */
#define gives(code, call)                                                                          \
	do {                                                                                       \
		int gives_rc = (call);                                                             \
		claim(gives_rc == (code), "%s gave %d, not %d", #call, gives_rc, (int)(code));     \
	} while (0)

#define MIB ((size_t)1 << 20)
#define MS ((uint64_t)1000000)

/* cuInit and a context on device 0. */
__attribute__((unused)) static CUcontext claim_context(void)
{
	CUcontext ctx = NULL;
	ok(cuInit(0));
	ok(cuDevicePrimaryCtxRetain(&ctx, 0));
	ok(cuCtxSetCurrent(ctx));
	return ctx;
}

/* How many words of device memory differ from value at this moment. */
__attribute__((unused)) static size_t claim_wrong(CUdeviceptr at, uint32_t value, size_t words)
{
	static __thread uint32_t copy[262144];
	size_t i, n, wrong = 0;
	for (; words > 0; words -= n, at += n * 4) {
		n = words < 262144 ? words : 262144;
		if (tmfake_peek(at, copy, n * 4) != 0)
			return wrong + words;
		for (i = 0; i < n; i++)
			wrong += copy[i] != value;
	}
	return wrong;
}

#endif
