/* SPDX-License-Identifier: MIT */
/*
 * callsite: the stack of each key of the account, in the ledger's table of stacks. It is captured once,
 * when a heap meets a site that no heap has met, and with TIERMALLOC_LEDGER=stack or deep now and then
 * again, which shows whether a key is always reached the same way.
 *
 * Called in the midst of an allocation: takes no lock but that of modules.h and the ledger's, allocates
 * nothing. A signal handler that comes meanwhile finds its heap busy and does not come here.
 */
#ifndef TM_CALLSITE_H
#define TM_CALLSITE_H

#include "shim/heap/store.h"

/* tm_account_store.site and .sample */
void tm_callsite_new(const struct tm_heap *h, const struct tm_row *row, struct tm_site site);
void tm_callsite_sample(const struct tm_heap *h, const struct tm_row *row, size_t bytes,
			struct tm_site site);

void tm_callsite_fork_child(void);

#endif
