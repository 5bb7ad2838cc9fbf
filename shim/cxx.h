/* SPDX-License-Identifier: MIT */
/*
 * cxx: the out-of-memory behaviour of operator new (H36). The operators are in interpose_cxx.c.
 *
 * This library links no C++ run-time library: when an allocation fails it looks up the new_handler
 * and the throw function of the one that is loaded, wherever that is. The caller holds no lock.
 */
#ifndef TM_CXX_H
#define TM_CXX_H

#include "shim/base/attrs.h"

/*
 * For operator new: calls the new_handler and retries until the allocation succeeds; without a
 * handler throws std::bad_alloc. So it returns a block or does not return. If no C++ run-time
 * library is loaded: one message and SIGABRT.
 */
void *tm_cxx_new_failed(size_t size, size_t align);

/* The same for the nothrow forms: NULL instead of an exception, also if the handler throws. */
void *tm_cxx_nothrow_failed(size_t size, size_t align);

#endif
