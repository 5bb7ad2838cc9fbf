/* SPDX-License-Identifier: MIT */
#include "shim/heap/dense.h"

#include <stdatomic.h>

#include "shim/base/bits.h"
#include "shim/heap/collapse.h"
#include "shim/heap/heap.h"
#include "shim/heap/huge.h"
#include "shim/heap/limit.h"
#include "shim/heap/part.h"
#include "shim/heap/zone.h"
#include "shim/os/sys.h"

/* Blocks of this length and more get huge pages without samples. */
#define HUGE_BLOCK_PAGES (((size_t)32 << 20) >> TM_PAGE_SHIFT)
/* Bands: powers of two of the block's length; the first begins at one granule, the last is open. */
#define BANDS 10u
/*
 * A block is sampled when this many further blocks of its band have come: by then the program has
 * probably written what it wanted to.
 */
#define LAG 2u
/*
 * A band gets huge pages after this many samples, of blocks of this many pages in all, if this
 * percentage of them was resident; it loses them below SPARSE_PERCENT.
 */
#define ENOUGH_PAGES (((size_t)2 << 20) >> TM_PAGE_SHIFT)
#define ENOUGH_LOOKS 3u
#define DENSE_PERCENT 80u
#define SPARSE_PERCENT 60u
/* The sums are halved after this many samples, so that a band can change. */
#define MEMORY_LOOKS 16u
/*
 * After LOOKS_MAX samples of a band only one block in LOOKS_RARE is sampled, by SAMPLE_PAGES pages
 * of its middle.
 */
#define LOOKS_MAX 64u
#define LOOKS_RARE 16u
#define SAMPLE_PAGES 64u
/* A part with less in use is not worth a helper that makes huge pages of what is full already. */
#define WORTH_PAGES (((size_t)8 << 20) >> TM_PAGE_SHIFT)
/* Flag of a lag entry: the block was already waiting at the previous tick. */
#define SEEN ((uint32_t)1 << 31)
/* Up to this many untouched units behind the block are advised by the same call. */
#define AHEAD_UNITS 8u

/*
 * tm_dense_grown gives huge pages once GROWN_PAGES were grown in all and the part has
 * GROWN_PART_PAGES in use.
 */
#define GROWN_PAGES (((size_t)4 << 20) >> TM_PAGE_SHIFT)
#define GROWN_PART_PAGES (((size_t)8 << 20) >> TM_PAGE_SHIFT)

/* Spans get huge pages once this much per heap is advised for blocks. */
#define SPANS_FROM_UNITS (((size_t)128 << 20) >> TM_UNIT_SHIFT)

static _Atomic uint64_t grown_pages;

/* All accesses are relaxed: a lost sample does no harm. */
static struct band {
	_Atomic bool huge;
	_Atomic uint32_t notes, looks, all_looks;
	_Atomic uint64_t seen_pages, resident_pages;
	_Atomic uint64_t lag[LAG]; /* blocks to sample: page << 32 | SEEN | pages; 0: none */
} bands[BANDS];

static bool is_allowed(void)
{
	return tm_zone.huge == TM_THP_MADVISE || tm_zone.huge == TM_THP_ALWAYS;
}

static struct band *band_of(size_t pages)
{
	unsigned log2 = tm_bits_log2(pages);
	unsigned least = TM_GRANULE_SHIFT - TM_PAGE_SHIFT;

	return &bands[tm_bits_min(log2 > least ? log2 - least : 0, BANDS - 1)];
}

/* The whole units within these pages; returns how many, and the page of the first. */
static size_t units_in(uint32_t page, size_t pages, uint32_t *ret_page)
{
	size_t first = tm_bits_align_up(page, TM_UNIT_PAGES);
	size_t end = (page + pages) / TM_UNIT_PAGES * TM_UNIT_PAGES;

	*ret_page = (uint32_t)first;
	return end > first ? (end - first) / TM_UNIT_PAGES : 0;
}

void tm_dense_born(void *p, size_t pages, enum tm_fill fill)
{
	uint32_t page;
	size_t units;

	if (pages < HUGE_BLOCK_PAGES || fill == TM_FILL_ZERO || !is_allowed())
		return;
	units = units_in(tm_zone_page(p), pages, &page);
	if (units != 0)
		tm_huge_advise(page, units);
}

static void look(struct band *b, uint64_t block)
{
	unsigned char resident[SAMPLE_PAGES];
	size_t pages = (uint32_t)block & ~SEEN;
	size_t sample = tm_bits_min(pages, SAMPLE_PAGES);
	char *from = tm_zone_page_addr((uint32_t)(block >> 32) + (uint32_t)(pages - sample) / 2);
	size_t n = 0;

	/* some of it was purged since: the sample would say nothing about the program */
	if (tm_place_cold_pages((uint32_t)(block >> 32), pages) != 0)
		return;
	if (tm_sys_mincore(from, sample * TM_PAGE_BYTES, resident) != 0)
		return;
	for (size_t i = 0; i < sample; i++)
		n += resident[i] & 1;
	atomic_fetch_add_explicit(&b->all_looks, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&b->looks, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&b->seen_pages, pages, memory_order_relaxed);
	atomic_fetch_add_explicit(&b->resident_pages, pages * n / sample, memory_order_relaxed);
}

static void judge(enum tm_part part, struct band *b)
{
	uint32_t looks = atomic_load_explicit(&b->looks, memory_order_relaxed);
	uint64_t seen = atomic_load_explicit(&b->seen_pages, memory_order_relaxed);
	uint64_t full = atomic_load_explicit(&b->resident_pages, memory_order_relaxed);
	bool huge = atomic_load_explicit(&b->huge, memory_order_relaxed);

	if (looks < ENOUGH_LOOKS || seen < ENOUGH_PAGES)
		return;
	if (!huge && full * 100 >= seen * DENSE_PERCENT) {
		huge = true;
		/* its blocks so far, and what lies between them, are on small pages */
		if (tm_part_used_pages(part) >= WORTH_PAGES)
			tm_collapse_want(part);
	} else {
		huge = huge && full * 100 >= seen * SPARSE_PERCENT;
	}
	atomic_store_explicit(&b->huge, huge, memory_order_relaxed);
	if (looks < MEMORY_LOOKS)
		return;
	atomic_store_explicit(&b->looks, looks / 2, memory_order_relaxed);
	atomic_store_explicit(&b->seen_pages, seen / 2, memory_order_relaxed);
	atomic_store_explicit(&b->resident_pages, full / 2, memory_order_relaxed);
}

/* Nothing of the unit is resident, so its first touch can fault in a huge page. */
static bool is_untouched(uint32_t unit, enum tm_part part)
{
	const struct tm_unit *u = &tm_zone.units[unit];

	return u->part == part && u->touched == 0;
}

static void make_huge(enum tm_part part, uint32_t page, size_t pages, uint32_t ahead)
{
	uint32_t end = (uint32_t)(__atomic_load_n(&tm_zone.len, __ATOMIC_RELAXED) >> TM_UNIT_SHIFT);
	uint32_t last = (page + (uint32_t)pages - 1) / TM_UNIT_PAGES;
	uint32_t from = page / TM_UNIT_PAGES, to;

	while (from <= last && !is_untouched(from, part))
		from++;
	if (from > last)
		return;
	for (to = from; to < end && to <= last + ahead && is_untouched(to, part); to++)
		;
	tm_huge_advise(from * TM_UNIT_PAGES, to - from);
}

/*
 * Each heap has spans of many classes, and the last span of each class is only partly written: with
 * huge pages that costs up to some MiB per heap. That is little where far more memory of blocks is
 * on huge pages and full.
 */
static bool is_small_beside_blocks(void)
{
	return atomic_load_explicit(&tm_huge.advised, memory_order_relaxed) >=
	       SPANS_FROM_UNITS * (uint64_t)tm_bits_max(tm_heap_count(), 1);
}

/*
 * Withdraw the advice from the block's whole units that were advised for other blocks and are still
 * untouched.
 */
static void make_small(enum tm_part part, uint32_t page, size_t pages)
{
	uint32_t first;
	size_t units = units_in(page, pages, &first);

	for (size_t i = 0; i < units; i++) {
		uint32_t unit = first / TM_UNIT_PAGES + (uint32_t)i;

		if ((tm_zone.units[unit].flags & TM_UNIT_HUGE) && is_untouched(unit, part))
			tm_huge_decline(unit * TM_UNIT_PAGES, 1);
	}
}

void tm_dense_note(enum tm_part part, uint32_t page, size_t pages)
{
	struct band *b = band_of(pages);
	uint32_t note;
	uint64_t block;

	if (!is_allowed())
		return;
	if (part == TM_PART_SPAN) {
		if (is_untouched(page / TM_UNIT_PAGES, part) && is_small_beside_blocks())
			make_huge(part, page, pages, 0);
		return;
	}
	note = atomic_fetch_add_explicit(&b->notes, 1, memory_order_relaxed);
	block = atomic_exchange_explicit(&b->lag[note % LAG], (uint64_t)page << 32 | pages,
					 memory_order_relaxed);
	if (block != 0 &&
	    (atomic_load_explicit(&b->all_looks, memory_order_relaxed) < LOOKS_MAX ||
	     note % LOOKS_RARE == 0) &&
	    tm_limit_may_look()) {
		look(b, block);
		judge(part, b);
	}
	if (atomic_load_explicit(&b->huge, memory_order_relaxed))
		make_huge(part, page, pages, AHEAD_UNITS);
	else
		make_small(part, page, pages);
}

void tm_dense_tick(void)
{
	if (!is_allowed() || !tm_limit_may_look())
		return;
	for (unsigned i = 0; i < BANDS * LAG; i++) {
		struct band *b = &bands[i / LAG];
		_Atomic uint64_t *lag = &b->lag[i % LAG];
		uint64_t block = atomic_load_explicit(lag, memory_order_relaxed);

		if (block == 0 ||
		    !atomic_compare_exchange_strong(lag, &block, block & SEEN ? 0 : block | SEEN))
			continue;
		if (block & SEEN) {
			look(b, block);
			judge((enum tm_part)tm_zone_unit((uint32_t)(block >> 32))->part, b);
		}
	}
}

void tm_dense_grown(enum tm_part part, uint32_t page, size_t pages)
{
	uint64_t seen = atomic_fetch_add_explicit(&grown_pages, pages, memory_order_relaxed);

	if (part == TM_PART_SPAN || !is_allowed())
		return;
	if (seen < GROWN_PAGES || tm_part_used_pages(part) < GROWN_PART_PAGES ||
	    tm_limit_is_near(TM_UNIT_BYTES))
		tm_dense_note(part, page, pages);
	else
		make_huge(part, page, pages, 0);
}

void tm_dense_clear(void)
{
	atomic_store_explicit(&grown_pages, 0, memory_order_relaxed);
	for (unsigned i = 0; i < BANDS; i++) {
		struct band *b = &bands[i];

		atomic_store_explicit(&b->huge, false, memory_order_relaxed);
		atomic_store_explicit(&b->notes, 0, memory_order_relaxed);
		atomic_store_explicit(&b->looks, 0, memory_order_relaxed);
		atomic_store_explicit(&b->all_looks, 0, memory_order_relaxed);
		atomic_store_explicit(&b->seen_pages, 0, memory_order_relaxed);
		atomic_store_explicit(&b->resident_pages, 0, memory_order_relaxed);
		for (unsigned k = 0; k < LAG; k++)
			atomic_store_explicit(&b->lag[k], 0, memory_order_relaxed);
	}
}
