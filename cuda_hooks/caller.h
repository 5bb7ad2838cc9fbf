/* SPDX-License-Identifier: MIT */
/*
 * caller: whose call it was where the hook's own caller is a runtime: one that is linked into a library
 * (cuBLAS, cuDNN), or a shared one whose functions were found by dlsym. Their inner addresses would name
 * every block alike, so the account takes the first return address outside that object instead, among 16
 * frames. Pools go by the inner one: whether a library shares what it allocates is a question about it.
 *
 * An object is a runtime's when it asked cuGetProcAddress for as many names as only a runtime does. The
 * program itself is none: outside of it there is nobody. One look for each caller and stack pointer.
 *
 * Callers hold tm_hooks_lock where nothing else is said.
 */
#ifndef TM_CUDA_CALLER_H
#define TM_CUDA_CALLER_H

#include "shim/base/attrs.h"

extern TM_HIDDEN uint32_t tm_caller_runtimes; /* [lock] objects that are runtimes */

/* A name was looked up from there. */
void tm_caller_asked(uintptr_t caller);

/* The call site; frame: the stack pointer behind the return to it. */
uintptr_t tm_caller_find(uintptr_t site, uintptr_t frame);

/* An object may be gone. No lock is needed. */
void tm_caller_unloaded(void);

#endif
