/* SPDX-License-Identifier: MIT */
/*
 * sheet: writes a breakdown of the resident memory (from /proc/self/smaps) into the ledger, so that
 * it is known after the process has ended. The kernel walks all pages for it, about 3 ms per GiB of
 * small pages. So it is made only when due (every five seconds, or when RSS has changed by an
 * eighth), and takes at most 0.25 % of the time, 1 % while memory grows. If it is expected to take
 * more than 1 ms, only the helper does it.
 */
#ifndef TM_SHEET_H
#define TM_SHEET_H

#include "shim/base/ledger_format.h"

/*
 * Writes a sheet if one is due. rss_bytes: current RSS; pause_ms: the regular interval (five
 * seconds, scaled in tests). Under the lock of samples.c.
 */
void tm_sheet_tick(uint64_t now_ms, uint64_t rss_bytes, uint64_t pause_ms);

/* Writes a sheet now, due or not: at the end of a process whose ledger is kept. Same lock. */
void tm_sheet_write(uint64_t now_ms);

/* Of the zone, according to the last sheet. */
uint64_t tm_sheet_resident_bytes(void);
uint64_t tm_sheet_huge_bytes(void);

/* A ledger begins. */
void tm_sheet_begin(void);

#endif
