/* SPDX-License-Identifier: MIT */
/*
 * ledger_copy: the ledger's memory as it is at a fork, for the child of a signal handler that came in
 * the middle of an allocation and may return there (fork.c). One at a time: under the lock of forks.
 */
#ifndef TM_LEDGER_COPY_H
#define TM_LEDGER_COPY_H

#include "shim/base/attrs.h"

/* In the parent, before. False: no memory; there is no copy. */
bool tm_ledger_copy_take(void);

/* In the parent, afterwards, and where none was used. */
void tm_ledger_copy_drop(void);

/* In the child, once private zeros have taken the file's place. */
void tm_ledger_copy_enter(void);

#endif
