/* SPDX-License-Identifier: MIT */
#include "shim/ledger/epoch.h"

#include "shim/base/bits.h"
#include "shim/heap/account.h"
#include "shim/heap/heap.h"
#include "shim/ledger/census.h"
#include "shim/ledger/ledger.h"
#include "shim/ledger/modules.h"
#include "shim/os/clock.h"

#define SCAN_SHARE 100u

/* --- marks ------------------------------------------------------------------------------------ */

static uint64_t marks[TM_EPOCH_MARKS];          /* [atomic] */
static uint64_t marks_at_begin[TM_EPOCH_MARKS]; /* of the ledger */
static uint64_t marks_at_window[TM_EPOCH_MARKS];

void tm_epoch_mark(enum tm_epoch_mark mark)
{
	__atomic_fetch_add(&marks[mark], 1, __ATOMIC_RELAXED);
}

uint64_t tm_epoch_marked(enum tm_epoch_mark mark)
{
	return __atomic_load_n(&marks[mark], __ATOMIC_RELAXED) - marks_at_begin[mark];
}

/* Since the last window's end. */
static uint32_t marked_in_window(enum tm_epoch_mark mark)
{
	uint64_t now = __atomic_load_n(&marks[mark], __ATOMIC_RELAXED);
	uint64_t count = now - marks_at_window[mark];

	marks_at_window[mark] = now;
	return (uint32_t)tm_bits_min(count, UINT32_MAX);
}

static void begin_marks(void)
{
	for (unsigned i = 0; i < TM_EPOCH_MARKS; i++)
		marks_at_begin[i] = marks_at_window[i] =
			__atomic_load_n(&marks[i], __ATOMIC_RELAXED);
}

/* --- the ledger's cohorts --------------------------------------------------------------------- */

/* Updates the records of sites in the census, and finds the weakest record. */
static void update_records(uint32_t epoch, uint32_t *ret_weakest)
{
	struct tm_ledger_header *header = tm_ledger_header();
	uint64_t least = UINT64_MAX;

	for (uint32_t n = 0; n < header->cohort_sites; n++) {
		struct tm_ledger_cohorts *r = tm_epoch_record(n);
		uint64_t key = r == NULL || r->gpu_row != 0
				       ? 0
				       : (uint64_t)r->site | (uint64_t)r->height << 48;
		struct tm_epoch_site *site = tm_census_site_of(key);

		if (site == NULL)
			continue;
		tm_epoch_record_write(r, site, epoch);
		if (r->live_bytes < least) {
			least = r->live_bytes;
			*ret_weakest = n;
		}
		site->key = 0; /* done */
	}
}

static void add_records(uint32_t epoch)
{
	struct tm_ledger_header *header = tm_ledger_header();
	uint32_t weakest = 0;

	update_records(epoch, &weakest);
	for (uint32_t i = 1; i <= tm_census_sites(); i++) {
		const struct tm_epoch_site *site = tm_census_site(i);
		struct tm_ledger_cohorts *r;

		if (site->key == 0 || site->live < TM_EPOCH_LIVE_MIN || site->cohort[0] == 0)
			continue;
		if (header->cohort_sites == TM_LEDGER_COHORT_SITES) {
			r = tm_epoch_record(weakest);
			if (r == NULL || r->live_bytes >= site->live_bytes / 2)
				continue;
			tm_epoch_record_begin(r, site, epoch);
			continue;
		}
		r = tm_epoch_record(header->cohort_sites);
		if (r == NULL)
			return;
		tm_epoch_record_begin(r, site, epoch);
		__atomic_store_n(&header->cohort_sites, header->cohort_sites + 1, __ATOMIC_RELEASE);
	}
}

static void write_window(const struct tm_census_totals *t, uint64_t now_ms, uint64_t rss_bytes,
			 uint32_t sites)
{
	static uint64_t births_before; /* of the ledger's process: starts anew with it */
	struct tm_ledger_header *header = tm_ledger_header();
	uint32_t index = header->windows % TM_LEDGER_WINDOWS;
	struct tm_ledger_window *w =
		tm_ledger_area(TM_LEDGER_WINDOWS_AT + index * sizeof(*w), sizeof(*w));

	if (w == NULL)
		return;
	if (header->windows == 0)
		births_before = 0;
	__atomic_store_n(&w->seq, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	w->sites = sites;
	w->begun_ms = header->epoch_begun_ms;
	w->ended_ms = now_ms;
	w->live_objects = t->objects[0];
	w->live_bytes = t->live_bytes[0];
	w->births = t->births - births_before;
	w->rss_bytes = rss_bytes;
	w->sessions = marked_in_window(TM_EPOCH_SESSION);
	w->tokens = marked_in_window(TM_EPOCH_TOKEN);
	births_before = t->births;
	__atomic_store_n(&w->seq, header->epoch, __ATOMIC_RELEASE);
	__atomic_store_n(&header->windows, header->windows + 1, __ATOMIC_RELEASE);
}

/* --- windows ---------------------------------------------------------------------------------- */

static void set_epoch(struct tm_heap *h, void *arg)
{
	(void)arg;
	__atomic_store_n(&h->birth, tm_account_birth, __ATOMIC_RELAXED);
}

static void begin_epoch(uint32_t epoch)
{
	tm_account_birth = (uint64_t)tm_ledger_epoch8(epoch) << TM_BIRTH_SHIFT;
	tm_heap_each(set_epoch, NULL);
}

void tm_epoch_begin(uint32_t window_ms)
{
	struct tm_ledger_header *header = tm_ledger_header();

	header->epoch = 1;
	header->window_ms = window_ms;
	header->epoch_begun_ms = tm_clock_ms();
	header->old_windows = TM_EPOCH_OLD_WINDOWS;
	header->features |= TM_LEDGER_HAS_EPOCHS;
	/* an unfinished walk inherited from a fork's parent uses other epochs */
	tm_census_end();
	begin_marks();
	begin_epoch(1);
}

bool tm_epoch_is_over(uint64_t now_ms)
{
	const struct tm_ledger_header *header = tm_ledger_header();
	uint64_t scan_ms = header->scan_ns / 1000000;

	return now_ms - header->epoch_begun_ms >=
	       tm_bits_max(header->window_ms, scan_ms * SCAN_SHARE);
}

void tm_epoch_end(uint64_t now_ms, uint64_t rss_bytes, uint64_t count_ns)
{
	struct tm_ledger_header *header = tm_ledger_header();
	uint64_t before = tm_clock_ns();

	add_records(header->epoch);
	tm_epoch_record_devices(now_ms);
	tm_modules_sweep();
	write_window(tm_census_totals(), now_ms, rss_bytes, tm_census_sites());
	header->scan_ns = count_ns + tm_clock_ns() - before;
	header->epoch_begun_ms = now_ms;
	__atomic_store_n(&header->epoch, header->epoch + 1, __ATOMIC_RELEASE);
	begin_epoch(header->epoch);
}
