/* SPDX-License-Identifier: MIT */
/*
 * collapse: huge pages for memory that stands on small ones although all of it is written: what was taken
 * before blocks of its length were known to be full (dense.h), or while the kernel was short of huge
 * pages (huge.h). From the helper, once a part takes hardly any new memory; never on a program's thread.
 * A unit is tried once, until it is given back; it must be full, so that nothing becomes resident by it,
 * and mapped by nobody else, so that what a forked process shares stays shared.
 *
 * State is under the lock of purge.c, that of units under their part's.
 */
#ifndef TM_HEAP_COLLAPSE_H
#define TM_HEAP_COLLAPSE_H

#include "shim/heap/zone.h"

/* Linux 6.1. Any thread, any lock: a helper shall come and look at this part. */
void tm_collapse_want(enum tm_part part);

/* It has not come yet. */
bool tm_collapse_is_wanted(void);

/* [purge lock] Once per tick, from the helper. True: it shall stay for the rest. */
bool tm_collapse_tick(void);

/* Tests only. */
void tm_collapse_clear(void);

#endif
