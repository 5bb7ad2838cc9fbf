/* SPDX-License-Identifier: MIT */
/*
 * sheet: what the resident memory consists of, in the ledger, so that it can be told of a process
 * that is gone. A walk of the kernel's over all pages, some 3 ms per GiB of small ones: made when it is
 * due (every five seconds, or the memory has changed by an eighth) and for at most a quarter of a per
 * cent of the time, one per cent while memory grows; where it takes longer than 3 ms, by the helper
 * alone.
 */
#ifndef TM_SHEET_H
#define TM_SHEET_H

#include "shim/base/ledger_format.h"

/* [lock of samples.c] rss: the resident memory as it is now. scaled: what five seconds are. */
void tm_sheet_tick(uint64_t now_ms, uint64_t rss_bytes, uint64_t pause_ms);

/* Now, due or not, for the end of a process whose ledger stays. Same lock. */
void tm_sheet_write(uint64_t now_ms);

/* Of the zone, by the last one. */
uint64_t tm_sheet_resident_bytes(void);
uint64_t tm_sheet_huge_bytes(void);

/* A ledger begins. */
void tm_sheet_begin(void);

#endif
