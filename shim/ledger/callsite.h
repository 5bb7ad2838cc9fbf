/* SPDX-License-Identifier: MIT */
/*
 * callsite: captures the call stack of each key of the account (return address and stack height)
 * into the ledger's table of stacks: once when the first heap counts a new key, and with
 * TIERMALLOC_LEDGER=stack or deep occasionally again, to see whether other stacks share that key.
 *
 * Runs inside an allocation: allocates nothing, takes only the locks of modules.h and of the
 * ledger. A signal handler that interrupts it finds the heap busy and therefore never re-enters.
 */
#ifndef TM_CALLSITE_H
#define TM_CALLSITE_H

#include "shim/heap/store.h"

/* The account's hooks tm_account_store.site (new key) and .sample (again). */
void tm_callsite_new(const struct tm_heap *h, const struct tm_row *row, struct tm_site site);
void tm_callsite_sample(const struct tm_heap *h, const struct tm_row *row, size_t bytes,
			struct tm_site site);

void tm_callsite_fork_child(void);

#endif
