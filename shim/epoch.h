/* SPDX-License-Identifier: MIT */
/*
 * epoch: ages of objects. Time is cut into windows (TIERMALLOC_LEAK_WINDOW_MS); an entry holds the
 * number of the window its object was born in, one byte of it. At a window's end all entries are
 * counted by site and age, and the sites that grow get a record in the ledger's table of cohorts.
 *
 * Windows are made longer until the count (census.h) is 1 % of them. Objects older than 200 windows lose
 * their number, so that 255 of them suffice.
 *
 * Unless it is said otherwise: under the lock of samples.c, by a thread that holds its heap, or by the
 * helper.
 */
#ifndef TM_EPOCH_H
#define TM_EPOCH_H

#include "shim/base/ledger_format.h"

/* The program's marks. Any thread, signal-safe; counted from the start of the process on. */
enum tm_epoch_mark { TM_EPOCH_SESSION, TM_EPOCH_SESSION_ENDED, TM_EPOCH_TOKEN, TM_EPOCH_MARKS };
void tm_epoch_mark(enum tm_epoch_mark mark);
/* Since the ledger began. */
uint64_t tm_epoch_marked(enum tm_epoch_mark mark);

/* A ledger begins: objects from here on are of its first window. */
void tm_epoch_begin(uint32_t window_ms);

/* Its time has come: a census by sites is to be made, */
bool tm_epoch_is_over(uint64_t now_ms);
/* and was, in so many nanoseconds. */
void tm_epoch_end(uint64_t now_ms, uint64_t rss_bytes, uint64_t count_ns);

#endif
