/* SPDX-License-Identifier: MIT */
/*
 * census: what lives, by a walk over the page map. A walk over all objects of a large heap takes tens of
 * milliseconds, so it is done in slices: a thread of the program's looks at a few thousand entries and
 * goes on with its request, whoever comes later goes on with the walk; the helper does it at one go. What
 * is born or dies meanwhile may be missing or be counted.
 *
 * An entry costs .6 to 10 ns, 64 KiB of blocks .1 ns.
 *
 * Under the lock of samples.c, by a thread that holds its heap, or by the helper.
 */
#ifndef TM_CENSUS_H
#define TM_CENSUS_H

#include "shim/base/ledger_format.h"
#include "shim/epoch_records.h"

enum tm_census_kind {
	TM_CENSUS_NONE,
	TM_CENSUS_TOTALS,
	TM_CENSUS_SITES, /* and by site and age, and what is certain of sizes */
};

struct tm_census_totals {
	uint64_t objects[TM_LEDGER_TIERS]; /* 0: of all */
	uint64_t live_bytes[TM_LEDGER_TIERS];
	uint64_t slot_bytes[TM_LEDGER_TIERS];
	uint64_t births; /* objects ever allocated */
};

/*
 * Entries, granules and rows that a thread of the program's looks at for one request: some .1 ms. The
 * last span is counted whole, so it may be a span's more.
 */
#define TM_CENSUS_SLICE 12288u
#define TM_CENSUS_SLICE_MOST (TM_CENSUS_SLICE + 4096u)
#define TM_CENSUS_WHOLE UINT64_MAX

/* A walk begins, instead of one that is under way. -ENOMEM: there is none. */
int tm_census_begin(enum tm_census_kind kind);

/* What is under way. */
enum tm_census_kind tm_census_now(void);

/* So many steps more. True: the walk has ended; what it found stays until tm_census_end. */
bool tm_census_go_on(uint64_t steps);

const struct tm_census_totals *tm_census_totals(void);

/* Of a walk by sites. The site number `index`, from 1 on to so many; of a key, NULL: it has none. */
uint32_t tm_census_sites(void);
struct tm_epoch_site *tm_census_site(uint32_t index);
struct tm_epoch_site *tm_census_site_of(uint64_t key);

/* The walk, or what it found, is no longer wanted. Also where none is under way. */
void tm_census_end(void);

/* The most steps that one call took which was not to do all. */
uint64_t tm_census_longest(void);

#endif
