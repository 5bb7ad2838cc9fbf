/* SPDX-License-Identifier: MIT */
/*
 * ledger_granules: writes the ledger's record of each span and large block. Called by the account's
 * hooks when one begins or ends (heap/store.h), and once by ledger.c for all that exist when the
 * file is created.
 *
 * A record is written by the holder of the granule. Its kind is written last at the begin and first
 * at the end, so that a reader never sees a partial record.
 */
#ifndef TM_LEDGER_GRANULES_H
#define TM_LEDGER_GRANULES_H

#include "shim/heap/granule.h"

void tm_ledger_note_span(const struct tm_granule *head);
void tm_ledger_note_block(const struct tm_granule *head);
void tm_ledger_note_gone(const struct tm_granule *head);

/* Writes the records of all existing spans and blocks. */
void tm_ledger_publish(void);

#endif
