/* SPDX-License-Identifier: MIT */
#include "shim/heap/dense.h"

#include <stdatomic.h>

#include "shim/base/bits.h"
#include "shim/heap/limit.h"
#include "shim/heap/purge.h"
#include "shim/heap/zone.h"
#include "shim/os/sys.h"

/* Huge at once from here on. */
#define HUGE_BLOCK_PAGES (((size_t)32 << 20) >> TM_PAGE_SHIFT)
/* Smaller blocks say little. */
#define LOOK_FROM_PAGES (((size_t)256 << 10) >> TM_PAGE_SHIFT)
/* So much must have been seen, of so many blocks, and so much of it resident. */
#define ENOUGH_PAGES (((size_t)16 << 20) >> TM_PAGE_SHIFT)
#define ENOUGH_BLOCKS 8u
#define DENSE_PERCENT 80u
/* A program that was sparse so far may become dense: it is looked at this often, then never again. */
#define LOOKS_MAX 512u
#define SAMPLE_PAGES 256u

static struct {
	_Atomic bool huge;
	_Atomic uint32_t looks;
	_Atomic size_t seen_pages, resident_pages;
} dense;

bool tm_dense_is_huge(void)
{
	return atomic_load_explicit(&dense.huge, memory_order_relaxed);
}

static bool is_allowed(void)
{
	return tm_zone.huge == TM_THP_MADVISE || tm_zone.huge == TM_THP_ALWAYS;
}

/* The whole units inside a block. */
static size_t units_in(void *p, size_t pages, uint32_t *ret_page)
{
	size_t first = tm_bits_align_up(tm_zone_page(p), TM_UNIT_PAGES);
	size_t end = (tm_zone_page(p) + pages) / TM_UNIT_PAGES * TM_UNIT_PAGES;

	*ret_page = (uint32_t)first;
	return end > first ? (end - first) / TM_UNIT_PAGES : 0;
}

static void make_huge(uint32_t page, size_t units)
{
	if (tm_zone.os->hugepage(tm_zone_page_addr(page), units * TM_UNIT_BYTES) != 0)
		return;
	for (size_t i = 0; i < units; i++)
		__atomic_fetch_or(&tm_zone_unit(page)[i].flags, TM_UNIT_HUGE, __ATOMIC_RELAXED);
}

bool tm_dense_born(void *p, size_t pages, enum tm_fill fill)
{
	uint32_t page;
	size_t units;

	if (tm_dense_is_huge() || !is_allowed())
		return false;
	if (pages < HUGE_BLOCK_PAGES || fill == TM_FILL_ZERO)
		return pages >= LOOK_FROM_PAGES;
	units = units_in(p, pages, &page);
	make_huge(page, units);
	return false;
}

/* All memory of the part, also what is in use: its next faults are huge. */
static void make_all_huge(void)
{
	size_t units = __atomic_load_n(&tm_zone.len, __ATOMIC_RELAXED) >> TM_UNIT_SHIFT;

	for (size_t at = 0; at < units;) {
		size_t end = at;

		while (end < units && tm_zone.units[end].part == TM_PART_LARGE)
			end++;
		if (end > at)
			make_huge((uint32_t)(at * TM_UNIT_PAGES), end - at);
		at = end + 1;
	}
}

static void look(void *p, size_t pages)
{
	unsigned char resident[SAMPLE_PAGES];
	size_t sample = pages < SAMPLE_PAGES ? pages : SAMPLE_PAGES;
	char *from = (char *)p + (pages - sample) / 2 * TM_PAGE_BYTES;
	size_t n = 0;

	if (tm_sys_mincore(from, sample * TM_PAGE_BYTES, resident) != 0)
		return;
	for (size_t i = 0; i < sample; i++)
		n += resident[i] & 1;
	size_t seen =
		atomic_fetch_add_explicit(&dense.seen_pages, pages, memory_order_relaxed) + pages;
	size_t full = pages * n / sample;
	full += atomic_fetch_add_explicit(&dense.resident_pages, full, memory_order_relaxed);
	uint32_t looks = atomic_fetch_add_explicit(&dense.looks, 1, memory_order_relaxed) + 1;
	if (seen < ENOUGH_PAGES || looks < ENOUGH_BLOCKS || full < seen / 100 * DENSE_PERCENT)
		return;
	if (!atomic_exchange_explicit(&dense.huge, true, memory_order_relaxed)) {
		make_all_huge();
		/* Once: free memory has small pages until it is given back. */
		tm_purge_now();
	}
}

void tm_dense_died(void *p, size_t pages)
{
	uint32_t page;

	if (!tm_dense_is_huge() &&
	    atomic_load_explicit(&dense.looks, memory_order_relaxed) < LOOKS_MAX &&
	    tm_limit_may_look())
		look(p, pages);
	if (!tm_dense_is_huge())
		return;
	/* Born before that: small pages go, once, so that huge ones come. */
	size_t units = units_in(p, pages, &page);
	if (units != 0)
		(void)tm_zone.os->dontneed(tm_zone_page_addr(page), units * TM_UNIT_BYTES);
}
