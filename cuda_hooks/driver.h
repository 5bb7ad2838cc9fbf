/* SPDX-License-Identifier: MIT */
/*
 * driver: the real functions of libcuda.so.1, and how calls reach the hooks instead.
 *
 * A program reaches the driver by its PLT (our exports come first), by dlsym on the driver's handle,
 * or by cuGetProcAddress, whose pointer came by one of the former. dlsym and cuGetProcAddress are
 * asked first, then their answer is replaced where it is the address of a function of cuda_api.def:
 * never another name, another version or another library's function. All real functions are read
 * from the symbol table of the one object that the first answer lay in. The library itself has no
 * reference to any of them.
 */
#ifndef TM_CUDA_DRIVER_H
#define TM_CUDA_DRIVER_H

#include <stdatomic.h>

#include "shim/base/attrs.h"
#include "shim/base/cuda_types.h"

/* NULL: this driver lacks it. [const once bound] */
struct tm_driver {
#define D(symbol, name, version, stream, kind, parameters, arguments)                              \
	tm_cu_result(*symbol) parameters;
#define U(symbol, version, parameters, arguments) tm_cu_result(*symbol) parameters;
#include "shim/base/cuda_api.def"
};

extern TM_HIDDEN struct tm_driver tm_driver;

/* tm_driver is filled; nothing else may be read of it before. */
extern TM_HIDDEN _Atomic uint32_t tm_driver_bound;

TM_INLINE bool tm_driver_is_bound(void)
{
	return atomic_load_explicit(&tm_driver_bound, memory_order_acquire) != 0;
}

/* Whether the driver is known; looks for it in the loaded objects where it is not. */
bool tm_driver_find(void);

/*
 * An object may be gone. Where it was the driver, which a program may open only to see whether there is
 * one, the next that is looked up is bound; but not once a context was seen, whose memory would be mixed up.
 */
void tm_driver_unloaded(void);

/* For tm_module: dlsym is asked for names of ours. */
void tm_driver_want_names(void);
bool tm_driver_is_defined(const char *name);

/* Called by the hooks of cuGetProcAddress after the real one succeeded: what to give instead. */
void *tm_driver_substitute(const char *name, void *found);

/* For the report. */
struct tm_driver_counts {
	uint64_t lookups;      /* of cuGetProcAddress */
	uint64_t substituted;  /* of these, and of dlsym */
	uint64_t other_driver; /* answers that lay in another library than the driver we know */
};
void tm_driver_counts(struct tm_driver_counts *ret);

/* Drivers that are mapped in namespaces of their own (dlmopen), where no preload reaches. */
uint64_t tm_driver_hidden(void);

#endif
