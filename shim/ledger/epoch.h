/* SPDX-License-Identifier: MIT */
/*
 * epoch: ages of objects, for the growth test (leak detection). Time is divided into windows
 * (TIERMALLOC_LEAK_WINDOW_MS) with consecutive numbers, the epochs. Each side entry holds the epoch
 * of its object's birth in one byte. At the end of a window a census counts all entries by site and
 * age, and growing sites get a record in the ledger's table of cohorts.
 *
 * Windows are lengthened until the census (census.h) takes at most 1 % of a window. Entries older
 * than 200 windows are reset to 0 ("old"), so that 255 values never become ambiguous.
 *
 * Unless said otherwise: under the lock of samples.c, by a thread that holds its heap, or by the
 * helper.
 */
#ifndef TM_EPOCH_H
#define TM_EPOCH_H

#include "shim/base/ledger_format.h"

/* Counts a mark of the program's (tiermalloc_step ...). Any thread, async-signal-safe. */
enum tm_epoch_mark { TM_EPOCH_SESSION, TM_EPOCH_SESSION_ENDED, TM_EPOCH_TOKEN, TM_EPOCH_MARKS };
void tm_epoch_mark(enum tm_epoch_mark mark);
/* Marks of this kind since the ledger began. */
uint64_t tm_epoch_marked(enum tm_epoch_mark mark);

/* A ledger begins: opens its first window. */
void tm_epoch_begin(uint32_t window_ms);

/* True: the window is over and its census by sites (TM_CENSUS_SITES) is due. */
bool tm_epoch_is_over(uint64_t now_ms);
/* Closes the window with the results of that census, which took count_ns, and opens the next. */
void tm_epoch_end(uint64_t now_ms, uint64_t rss_bytes, uint64_t count_ns);

#endif
