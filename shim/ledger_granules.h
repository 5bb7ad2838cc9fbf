/* SPDX-License-Identifier: MIT */
/*
 * ledger_granules: what the ledger says of spans and blocks, one record for each. The account calls it for
 * what comes and goes (heap/store.h); ledger.c once, for all that exist when the file begins.
 *
 * A record is written by whoever holds the granule; its kind last when it begins, first when it ends.
 */
#ifndef TM_LEDGER_GRANULES_H
#define TM_LEDGER_GRANULES_H

#include "shim/heap/granule.h"

void tm_ledger_note_span(const struct tm_granule *head);
void tm_ledger_note_block(const struct tm_granule *head);
void tm_ledger_note_gone(const struct tm_granule *head);

/* Notes all spans and blocks that exist. */
void tm_ledger_publish(void);

#endif
