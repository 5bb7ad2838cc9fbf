/* SPDX-License-Identifier: MIT */
/*
 * hooks: the exported functions of the driver interface, one for each row D of cuda_api.def, and the
 * handlers that they call. An export notes who called, asks whether the hooks serve at all, and jumps
 * to the real function where they do not: TIERMALLOC_CUDA=off, a passive library, a child forked after
 * cuInit (CUDA does not work there), or a call that the driver makes inside another one.
 *
 * Threads: any that may call CUDA; never signal handlers, which may not. One lock, tm_hooks_lock, guards
 * every record of cuda_hooks. It is not held while a call of the driver may wait for the device or call
 * back. Questions (cuEventQuery, cuCtxGet..., cuMemGetInfo, cuDeviceGet...), cuCtxRecordEvent and the
 * virtual-memory calls run under it.
 */
#ifndef TM_CUDA_HOOKS_H
#define TM_CUDA_HOOKS_H

#include "shim/base/attrs.h"
#include "shim/base/cuda_types.h"
#include "shim/boot.h"

/* Exports, and what they call: tm_on_SYMBOL, wherever it is defined. */
#define D(symbol, name, version, stream, kind, parameters, arguments)                              \
	tm_cu_result symbol parameters;                                                            \
	tm_cu_result tm_on_##symbol parameters;
#define R(symbol, kind, parameters, arguments) tm_rt_error symbol parameters;
#include "shim/base/cuda_api.def"

/* What a thread is doing. */
struct tm_hooks_thread {
	uintptr_t
		site; /* return address of the program's call, of the runtime's function if it came so */
	uintptr_t frame; /* the stack pointer behind that return; of a call that is not tagged */
	uint32_t tagged; /* inside a runtime function: site is its caller's */
	uint32_t inside; /* inside a hook: what the driver calls itself is passed on */
};

extern TM_HIDDEN TM_TLS struct tm_hooks_thread tm_hooks_thread;

void tm_hooks_boot(void);
void tm_hooks_lock(void);
bool tm_hooks_try(void); /* false: somebody has it */
void tm_hooks_unlock(void);

/* True: TIERMALLOC_CUDA=pool, and this process may. */
TM_INLINE bool tm_hooks_pools(void)
{
	return tm_root.options.cuda == TM_CUDA_POOL && tm_root.options.mode == TM_MODE_ON;
}

/* cuInit succeeded in this process: a forked child of it gets no service. */
void tm_hooks_initialised(void);
/* Whether a hook ever served a call in this process or in one that it was forked from. */
bool tm_hooks_were_used(void);
void tm_hooks_fork_child(void);

/* An object may be gone: what was found out about runtimes is void. */
void tm_runtime_unloaded(void);

#endif
