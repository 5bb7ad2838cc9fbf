/* SPDX-License-Identifier: MIT */
/*
 * own: the library's own mappings at addresses chosen by the kernel. The kernel merges adjacent
 * mappings with equal flags, and others use the same flags (V8 does), so /proc/self/smaps can't
 * tell whose memory it is; the breakdown of resident memory (sheet.h) does by this table. Only
 * mem.c adds and drops.
 *
 * No lock; any thread, any signal handler. If the table is full, or two threads collide at a
 * record, a mapping is not recorded, and counts as the program's.
 */
#ifndef TM_OS_OWN_H
#define TM_OS_OWN_H

#include "shim/base/attrs.h"

void tm_own_add(uintptr_t start, size_t bytes);
void tm_own_drop(uintptr_t start, size_t bytes);

/*
 * Finds the lowest part of [*start, end) that is the library's: sets *start and *ret_end to its
 * bounds. False: none.
 */
bool tm_own_next(uintptr_t *start, uintptr_t end, uintptr_t *ret_end);

#endif
