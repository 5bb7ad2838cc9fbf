/* SPDX-License-Identifier: MIT */
#include "shim/ledger/epoch_records.h"

#include "shim/base/bits.h"
#include "shim/ledger/ledger.h"
#include "shim/module.h"
#include "shim/os/mem.h"

/* --- records ---------------------------------------------------------------------------------- */

struct tm_ledger_cohorts *tm_epoch_record(uint32_t index)
{
	return tm_ledger_area(TM_LEDGER_COHORTS_AT + index * sizeof(struct tm_ledger_cohorts),
			      sizeof(struct tm_ledger_cohorts));
}

static void count_deaths(struct tm_ledger_cohorts *r, const struct tm_epoch_site *s)
{
	const unsigned last = TM_LEDGER_COHORTS - 1;
	uint64_t births = s->objects - r->objects;

	/* Cohorts never grow: the difference was freed. Born and freed within the window: */
	if (births > s->cohort[0])
		r->died[0] += (uint32_t)(births - s->cohort[0]);
	for (unsigned age = 0; age + 2 < TM_LEDGER_COHORTS; age++)
		if (r->cohort[age] > s->cohort[age + 1])
			r->died[age + 1] += r->cohort[age] - s->cohort[age + 1];
	uint32_t before = r->cohort[last] + r->cohort[last - 1];
	if (before > s->cohort[last])
		r->died[last] += before - s->cohort[last];
}

void tm_epoch_record_write(struct tm_ledger_cohorts *r, const struct tm_epoch_site *s,
			   uint32_t epoch)
{
	uint64_t births = s->objects - r->objects;
	size_t at = epoch % TM_LEDGER_WINDOWS;

	__atomic_store_n(&r->seq, r->seq | 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	if (r->last_epoch + 1 == epoch)
		count_deaths(r, s);
	for (uint32_t e = r->last_epoch + 1; r->last_epoch != 0 && e < epoch; e++)
		r->ring[e % TM_LEDGER_WINDOWS] = r->ring[r->last_epoch % TM_LEDGER_WINDOWS];
	r->last_epoch = epoch;
	if (r->first_epoch == 0)
		r->first_epoch = epoch;
	if (epoch - r->first_epoch >= TM_LEDGER_WINDOWS)
		r->first_epoch = epoch - TM_LEDGER_WINDOWS + 1;
	r->live_objects = s->live;
	r->live_bytes = s->live_bytes;
	r->objects = s->objects;
	__builtin_memcpy(r->cohort, s->cohort, sizeof(r->cohort));
	r->ring[at].births = births > UINT32_MAX ? UINT32_MAX : (uint32_t)births;
	r->ring[at].old = s->old;
	r->ring[at].live_kib = (uint32_t)tm_bits_min(s->live_bytes >> 10, UINT32_MAX);
	__atomic_store_n(&r->seq, (r->seq | 1) + 1, __ATOMIC_RELEASE);
}

void tm_epoch_record_begin(struct tm_ledger_cohorts *r, const struct tm_epoch_site *s,
			   uint32_t epoch)
{
	uint32_t seq = r->seq;

	__atomic_store_n(&r->seq, seq | 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	__builtin_memset(r, 0, sizeof(*r));
	r->seq = seq | 1;
	r->gpu_row = s->gpu_row;
	r->site = s->key & ((UINT64_C(1) << 48) - 1);
	r->height = (uint16_t)(s->key >> 48);
	/* births of the first window: only those still live are known */
	r->objects = s->objects - tm_bits_min(s->objects, s->cohort[0]);
	tm_epoch_record_write(r, s, epoch);
}

/* --- devices ---------------------------------------------------------------------------------- */

struct devices {
	struct tm_epoch_site *site; /* by row */
	uint32_t rows;
	uint32_t now_ms, old_windows;
	uint32_t begun[TM_LEDGER_COHORTS - 1]; /* age in ms of the last windows' begins */
	unsigned windows;
};

static void read_windows(struct devices *d, const struct tm_ledger_header *header, uint64_t now_ms)
{
	d->begun[0] = (uint32_t)(now_ms - header->epoch_begun_ms);
	for (d->windows = 1; d->windows < TM_ARRAY_LEN(d->begun); d->windows++) {
		uint32_t epoch = header->epoch - d->windows;
		const struct tm_ledger_window *w = tm_ledger_area(
			TM_LEDGER_WINDOWS_AT + (epoch - 1) % TM_LEDGER_WINDOWS * sizeof(*w),
			sizeof(*w));

		if (epoch == 0 || w == NULL || w->seq != epoch)
			break;
		d->begun[d->windows] = (uint32_t)(now_ms - w->begun_ms);
	}
}

static void see_block(uint32_t row, uint32_t born_ms, void *arg)
{
	struct devices *d = arg;
	uint32_t lived = d->now_ms - born_ms;
	unsigned age = 0;

	if (row >= d->rows)
		return;
	/*
	 * a birth time read just before the window began but stored after it counts for the window
	 */
	if (lived > UINT32_MAX / 2)
		lived = 0;
	while (age < d->windows && lived > d->begun[age])
		age++;
	if (age == d->windows && d->windows < TM_ARRAY_LEN(d->begun))
		age = d->windows - 1; /* born before the ledger: in its first window */
	d->site[row].live++;
	d->site[row].old += age >= d->old_windows;
	d->site[row].cohort[age]++;
}

static void update_devices(struct devices *d, struct tm_ledger_header *header)
{
	for (uint32_t n = 0; n < header->cohort_sites; n++) {
		struct tm_ledger_cohorts *r = tm_epoch_record(n);

		if (r == NULL || r->gpu_row == 0 || r->gpu_row > d->rows)
			continue;
		struct tm_epoch_site *s = &d->site[r->gpu_row - 1];
		tm_epoch_record_write(r, s, header->epoch);
		s->gpu_row = 0; /* done */
	}
	for (uint32_t i = 0; i < d->rows; i++) {
		const struct tm_epoch_site *s = &d->site[i];

		if (s->gpu_row == 0 || s->live < TM_EPOCH_LIVE_MIN || s->cohort[0] == 0 ||
		    header->cohort_sites == TM_LEDGER_COHORT_SITES)
			continue;
		struct tm_ledger_cohorts *r = tm_epoch_record(header->cohort_sites);
		if (r == NULL)
			return;
		tm_epoch_record_begin(r, s, header->epoch);
		__atomic_store_n(&header->cohort_sites, header->cohort_sites + 1, __ATOMIC_RELEASE);
	}
}

void tm_epoch_record_devices(uint64_t now_ms)
{
	struct tm_ledger_header *header = tm_ledger_header();
	uint32_t rows = __atomic_load_n(&header->gpu_rows, __ATOMIC_ACQUIRE);
	struct devices d = {.rows = rows < TM_LEDGER_GPU_ROWS ? rows : TM_LEDGER_GPU_ROWS,
			    .now_ms = (uint32_t)now_ms,
			    .old_windows = header->old_windows};
	size_t bytes = tm_bits_align_up(d.rows * sizeof(*d.site), TM_PAGE_BYTES);
	const struct tm_ledger_gpu *row;

	if (d.rows == 0 || tm_module_cuda() == NULL)
		return;
	row = tm_ledger_area(TM_LEDGER_GPU_AT, d.rows * sizeof(*row));
	d.site = row == NULL ? NULL : tm_mem_map(bytes);
	if (d.site == NULL)
		return;
	read_windows(&d, header, now_ms);
	for (uint32_t i = 0; i < d.rows; i++) {
		struct tm_epoch_site *s = &d.site[i];

		s->key = (uint64_t)row[i].site | (uint64_t)row[i].height << 48;
		s->objects = row[i].objects;
		s->live_bytes = row[i].live_bytes;
		/* address 1: all sites without a row of their own */
		s->gpu_row = row[i].site > 1 ? i + 1 : 0;
	}
	if (tm_module_cuda()->each_block(see_block, &d))
		update_devices(&d, header);
	tm_mem_unmap_raw(d.site, bytes);
}
