/* SPDX-License-Identifier: MIT */
/*
 * driver: the real functions of libcuda.so.1, and how calls are routed to the hooks.
 *
 * A program reaches the driver through its PLT (the library's exports come first), by dlsym on the
 * driver's handle, or by cuGetProcAddress, whose pointer was obtained in one of those ways. For
 * dlsym and cuGetProcAddress the real function is called first; its answer is replaced if it is the
 * address of a function of cuda_api.def: never for another name, another version or another
 * library's function. All real functions are read from the symbol table of the object that the
 * first such answer lay in. The library itself has no reference to any of them.
 */
#ifndef TM_CUDA_DRIVER_H
#define TM_CUDA_DRIVER_H

#include <stdatomic.h>

#include "shim/base/attrs.h"
#include "shim/base/cuda_types.h"

/* The real functions; NULL: this driver lacks it. [const once bound] */
struct tm_driver {
#define D(symbol, name, version, stream, kind, parameters, arguments)                              \
	tm_cu_result(*symbol) parameters;
#define U(symbol, version, parameters, arguments) tm_cu_result(*symbol) parameters;
#include "shim/base/cuda_api.def"
};

extern TM_HIDDEN struct tm_driver tm_driver;

/* 1: tm_driver is filled in. Nothing in it may be read before. */
extern TM_HIDDEN _Atomic uint32_t tm_driver_bound;

TM_INLINE bool tm_driver_is_bound(void)
{
	return atomic_load_explicit(&tm_driver_bound, memory_order_acquire) != 0;
}

/* Whether the driver is known; if not, looks for it among the loaded objects. */
bool tm_driver_find(void);

/*
 * To be called when an object may have been unloaded. If it was the driver, which a program may
 * open just to see whether there is one, the next driver that is looked up gets bound; but not once
 * a context was seen, since its memory would be attributed to the wrong driver.
 */
void tm_driver_unloaded(void);

/*
 * For tm_module: have dlsym report look-ups of our names; whether an exported name exists in the
 * process.
 */
void tm_driver_want_names(void);
bool tm_driver_is_defined(const char *name);

/*
 * Called by the hooks of cuGetProcAddress after the real one succeeded: the pointer to return
 * instead of `found`.
 */
void *tm_driver_substitute(const char *name, void *found);

/* Counts for the report. */
struct tm_driver_counts {
	uint64_t lookups;      /* calls of cuGetProcAddress */
	uint64_t substituted;  /* answers replaced, of these and of dlsym */
	uint64_t other_driver; /* answers that lay in another library than the known driver */
};
void tm_driver_counts(struct tm_driver_counts *ret);

/*
 * Number of drivers mapped in link namespaces of their own (dlmopen), which a preload does not
 * reach.
 */
uint64_t tm_driver_hidden(void);

#endif
