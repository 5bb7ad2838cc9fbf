/* SPDX-License-Identifier: MIT */
/*
 * cxx: what C++'s operators do without memory (H36). The operators are in interpose_cxx.c.
 *
 * The library has no C++ run-time library of its own: at the moment of failure it takes the loaded
 * one's new_handler and throw, wherever that was loaded. Off every lock.
 */
#ifndef TM_CXX_H
#define TM_CXX_H

#include "shim/base/attrs.h"

/*
 * operator new without memory: runs the new_handler and tries again until there is memory, and
 * throws std::bad_alloc where there is no handler; so it returns a block or does not return. Where
 * no C++ run-time library is loaded, one line and SIGABRT.
 */
void *tm_cxx_new_failed(size_t size, size_t align);

/* The same for the nothrow forms: NULL instead of a throw, also where the handler throws. */
void *tm_cxx_nothrow_failed(size_t size, size_t align);

#endif
