/* SPDX-License-Identifier: MIT */
/*
 * caller: finds the program's call site where the immediate caller of a hook is a CUDA runtime: one
 * linked into a library (cuBLAS, cuDNN), or a shared one whose functions were found by dlsym. A
 * runtime's inner return addresses would be the same for every block, so the account uses the first
 * return address outside the runtime's object instead, among 16 frames. Pools use the inner
 * address: whether a library shares what it allocates is a property of that library.
 *
 * An object counts as a runtime once it has asked cuGetProcAddress for as many names as only a
 * runtime does. The program itself never counts as one: there would be no caller outside of it. The
 * stack is walked once for each caller and stack pointer.
 *
 * Callers hold tm_hooks_lock unless stated otherwise.
 */
#ifndef TM_CUDA_CALLER_H
#define TM_CUDA_CALLER_H

#include "shim/base/attrs.h"

extern TM_HIDDEN uint32_t tm_caller_runtimes; /* [lock] number of objects known to be runtimes */

/* Counts one name look-up from the code at `caller`. */
void tm_caller_asked(uintptr_t caller);

/*
 * Returns the program's call site, or `site` if its object is no runtime or no outer caller is
 * found. frame: the stack pointer just after the return to `site`.
 */
uintptr_t tm_caller_find(uintptr_t site, uintptr_t frame);

/* To be called when an object may have been unloaded. Takes no lock. */
void tm_caller_unloaded(void);

#endif
