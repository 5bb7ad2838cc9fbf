/* SPDX-License-Identifier: MIT */
/*
 * ledger_copy: a copy of the ledger's memory at a fork, for the child of a signal handler that
 * interrupted an allocation: it may return into that allocation (fork.c). One copy at a time; the
 * caller holds the lock of forks.
 */
#ifndef TM_LEDGER_COPY_H
#define TM_LEDGER_COPY_H

#include "shim/base/attrs.h"

/* In the parent, before the fork. False: no memory, no copy was made. */
bool tm_ledger_copy_take(void);

/* In the parent after the fork, and wherever the copy isn't needed after all: frees it. */
void tm_ledger_copy_drop(void);

/* In the child, after tm_ledger_keep_in_child: restores the contents from the copy. */
void tm_ledger_copy_enter(void);

#endif
