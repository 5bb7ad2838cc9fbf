/* SPDX-License-Identifier: MIT */
/*
 * rt: a CUDA runtime of our own for tests. It finds the driver the way the real one does: dlopen of
 * libcuda.so.1, dlsym of cuGetProcAddress_v2, a lookup per function at the version it was written
 * for; older ones with the getter of four arguments, or dlsym of every export. Its exports carry the
 * version node of their soname; fakert/static is the same as an archive.
 */
#ifndef TM_TEST_FAKE_RT_H
#define TM_TEST_FAKE_RT_H

#include "tests/cuda/cu.h"
#include "tests/cuda/fakert/cudart.h"

#include <stdbool.h>

#define RT_EXPORT __attribute__((visibility("default")))

/* The driver's functions, each NULL until bound or where the driver has none. */
struct rt_driver {
#define L(name, base, version, flags) __typeof__(name) *name;
#define P(name, base, version, flags) __typeof__(name) *name##_own;
#include "tests/cuda/fakert/lookups.def"
#undef L
#undef P
	CUresult (*get4)(const char *, void **, int, uint64_t);
	CUresult (*get5)(const char *, void **, int, uint64_t, int *);
	void *handle;
};

extern struct rt_driver rt;

/* Binds the driver; 0, or cudaErrorInsufficientDriver. */
cudaError_t rt_bind(void);
/* Binds, initialises and makes the thread's device current. */
cudaError_t rt_begin(void);
/* Notes what a call ends with as the thread's last error. */
cudaError_t rt_end(int rc);
int rt_version(void);

#endif
