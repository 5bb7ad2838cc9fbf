/* SPDX-License-Identifier: MIT */
/*
 * own: which mappings are the library's own, of those whose place the kernel chose. Others map memory
 * with the same flags (V8 does), and the kernel makes one mapping of two that adjoin; the balance of
 * resident memory tells them apart by this. mem.c alone adds and drops.
 *
 * No lock, any thread, any signal handler. Where more are made than there is room for, or two threads
 * meet at one record, a mapping is forgotten: it is then told as the program's.
 */
#ifndef TM_OS_OWN_H
#define TM_OS_OWN_H

#include "shim/base/attrs.h"

void tm_own_add(uintptr_t start, size_t bytes);
void tm_own_drop(uintptr_t start, size_t bytes);

/* The part of [*start, end) that is the library's and begins first. False: none of it is. */
bool tm_own_next(uintptr_t *start, uintptr_t end, uintptr_t *ret_end);

#endif
