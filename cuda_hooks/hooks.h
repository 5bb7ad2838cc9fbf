/* SPDX-License-Identifier: MIT */
/*
 * hooks: the exported functions of the driver interface, one for each D row of cuda_api.def, and
 * the handlers that they call. An export records the caller, checks whether the hooks are active,
 * and jumps to the real function if not: TIERMALLOC_CUDA=off, a passive library, a child forked
 * after cuInit (where CUDA does not work), or a call that the driver makes from within another one.
 *
 * Threads: any that may call CUDA; never signal handlers, which may not. One lock, tm_hooks_lock,
 * guards every record of cuda_hooks. It is not held during a driver call that may wait for the
 * device or call back. Queries (cuEventQuery, cuCtxGet..., cuMemGetInfo, cuDeviceGet...),
 * cuCtxRecordEvent and the virtual-memory calls run under it.
 */
#ifndef TM_CUDA_HOOKS_H
#define TM_CUDA_HOOKS_H

#include "shim/base/attrs.h"
#include "shim/base/cuda_types.h"
#include "shim/boot.h"

/* The exports, and the handler tm_on_SYMBOL of each, defined in the module that handles it. */
#define D(symbol, name, version, stream, kind, parameters, arguments)                              \
	tm_cu_result symbol parameters;                                                            \
	tm_cu_result tm_on_##symbol parameters;
#define R(symbol, kind, parameters, arguments) tm_rt_error symbol parameters;
#include "shim/base/cuda_api.def"

/* State of a thread's current call. */
struct tm_hooks_thread {
	uintptr_t
		/*
		 * return address of the program's call; of its call of the runtime, if it came
		 * through one
		 */
		site;
	uintptr_t frame; /* stack pointer just after that return; only if not tagged */
	/* depth of hooked runtime functions: site is the caller of the outermost */
	uint32_t tagged;
	uint32_t inside; /* depth of hooks: calls that the driver makes itself are passed on */
};

extern TM_HIDDEN TM_TLS struct tm_hooks_thread tm_hooks_thread;

/* Registers the lock; called once at boot. */
void tm_hooks_boot(void);
void tm_hooks_lock(void);
bool tm_hooks_try(void); /* false: another thread holds it */
void tm_hooks_unlock(void);

/* Whether pools are active: TIERMALLOC_CUDA=pool and the library is on. */
TM_INLINE bool tm_hooks_pools(void)
{
	return tm_root.options.cuda == TM_CUDA_POOL && tm_root.options.mode == TM_MODE_ON;
}

/* cuInit has succeeded in this process: its forked children are not served. */
void tm_hooks_initialised(void);
/* Whether a hook ever served a call in this process or in one that it was forked from. */
bool tm_hooks_were_used(void);
/* In a forked child: switches the hooks off if cuInit had succeeded in the parent. */
void tm_hooks_fork_child(void);

/* To be called when an object may have been unloaded: drops what is known about runtimes. */
void tm_runtime_unloaded(void);

#endif
