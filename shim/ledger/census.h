/* SPDX-License-Identifier: MIT */
/*
 * census: counts the live objects by a walk over the page map. A complete walk of a large heap
 * takes tens of milliseconds, so program threads do it in slices: a thread on a slow path visits a
 * few thousand side entries and continues with its request, the next one continues the walk. The
 * helper walks without a break. The walk is no snapshot: an object allocated or freed meanwhile may
 * or may not be counted.
 *
 * Cost: 0.6 to 10 ns per entry, 0.1 ns per 64 KiB of large blocks.
 *
 * All functions: under the lock of samples.c, by a thread that holds its heap, or by the helper.
 */
#ifndef TM_CENSUS_H
#define TM_CENSUS_H

#include "shim/base/ledger_format.h"
#include "shim/ledger/epoch_records.h"

enum tm_census_kind {
	TM_CENSUS_NONE,
	TM_CENSUS_TOTALS,
	TM_CENSUS_SITES, /* totals, by site and age, and the exact sizes where they are certain */
};

struct tm_census_totals {
	uint64_t objects[TM_LEDGER_TIERS]; /* live, by tier; index 0: all tiers */
	uint64_t live_bytes[TM_LEDGER_TIERS];
	uint64_t slot_bytes[TM_LEDGER_TIERS];
	uint64_t births; /* objects ever allocated */
};

/*
 * Steps (entries, granules, rows) of a program thread's slice: about 0.1 ms. A span is never split,
 * so a slice may exceed it by the entries of one span.
 */
#define TM_CENSUS_SLICE 12288u
#define TM_CENSUS_SLICE_MOST (TM_CENSUS_SLICE + 4096u)
#define TM_CENSUS_WHOLE UINT64_MAX

/* Starts a walk and abandons an unfinished one. 0 or -ENOMEM: no walk was started. */
int tm_census_begin(enum tm_census_kind kind);

/* The kind of the unfinished walk; TM_CENSUS_NONE: none. */
enum tm_census_kind tm_census_now(void);

/* Walks up to `steps` steps. True: complete; the results stay valid until tm_census_end. */
bool tm_census_go_on(uint64_t steps);

const struct tm_census_totals *tm_census_totals(void);

/*
 * Results of a TM_CENSUS_SITES walk: the number of sites; the site at index 1..that number; the
 * site of a key, or NULL.
 */
uint32_t tm_census_sites(void);
struct tm_epoch_site *tm_census_site(uint32_t index);
struct tm_epoch_site *tm_census_site_of(uint64_t key);

/* Drops the walk and its results, if any. */
void tm_census_end(void);

/* The largest number of steps that one sliced call took; for tests. */
uint64_t tm_census_longest(void);

#endif
