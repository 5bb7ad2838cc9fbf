/* SPDX-License-Identifier: MIT */
#include "shim/heap/collapse.h"

#include <errno.h>
#include <stdatomic.h>

#include "shim/base/bits.h"
#include "shim/heap/huge.h"
#include "shim/heap/limit.h"
#include "shim/heap/part.h"
#include "shim/os/sys.h"

/*
 * A part is quiet after this many ticks with hardly any new memory: what was taken has been written
 * by then, if it ever will be.
 */
#define QUIET_TICKS 10u
/* Of what is in use: the most new memory in a quiet tick, or QUIET_PAGES if that is more. */
#define QUIET_SHARE 256u
#define QUIET_PAGES ((uint64_t)64)
/* The longest time that a helper stays for this. */
#define PATIENCE_TICKS 300u
/*
 * Units collapsed per tick: each takes the kernel a few tenths of a millisecond, in which no page
 * of the process can fault. And units examined per tick.
 */
#define UNITS_A_TICK 16u
#define LOOKS_A_TICK 4096u
/* Pages of a unit that must be resident and mapped by this process alone. */
#define FULL_PAGES (TM_UNIT_PAGES - TM_UNIT_PAGES / 32)
/* Flags of /proc/self/pagemap: present, and mapped exclusively. */
#define MAP_OURS ((uint64_t)1 << 63 | (uint64_t)1 << 56)
/* Refusals in a row after which no more is tried: the kernel has no huge pages. */
#define REFUSALS_MAX 8u

static struct {
	_Atomic bool wanted[TM_PART_COUNT];
	_Atomic bool any; /* a part is, or was since the last tick */
	uint32_t stayed;  /* ticks */
	uint32_t refusals;
	struct {
		uint64_t fresh;  /* fresh_pages of the part at the last tick, */
		uint64_t walked; /* and when the last walk over its units began */
		uint32_t quiet;  /* ticks */
		uint32_t unit;   /* where the walk continues; 0: at the beginning */
	} part[TM_PART_COUNT];
} collapse;

void tm_collapse_want(enum tm_part part)
{
	if (tm_zone.os->collapse == NULL)
		return;
	atomic_store_explicit(&collapse.wanted[part], true, memory_order_relaxed);
	atomic_store_explicit(&collapse.any, true, memory_order_relaxed);
}

bool tm_collapse_is_wanted(void)
{
	if (TM_LIKELY(!atomic_load_explicit(&collapse.any, memory_order_relaxed)))
		return false;
	for (int i = 0; i < TM_PART_COUNT; i++)
		if (atomic_load_explicit(&collapse.wanted[i], memory_order_relaxed))
			return true;
	return false;
}

/*
 * [part lock] True for a unit that may be full of written small pages and is, or soon will be, in
 * use.
 */
static bool is_worth_a_look(const struct tm_part_state *ps, uint32_t at)
{
	const struct tm_unit *u = &tm_zone.units[at];

	return __atomic_load_n(&u->part, __ATOMIC_RELAXED) == tm_part_of(ps) &&
	       __atomic_load_n(&u->touched, __ATOMIC_RELAXED) == UINT32_MAX &&
	       (u->used != 0 || tm_swing_is_step(&ps->swing)) &&
	       !(u->flags & (TM_UNIT_TRIED | TM_UNIT_HUGETLB)) &&
	       !__atomic_load_n(&u->tainted, __ATOMIC_RELAXED);
}

/* [part lock] Choose the next units to examine and mark them tried. Returns how many. */
static uint32_t choose(const struct tm_part_state *ps, uint32_t *unit, uint32_t *from)
{
	uint32_t end = (uint32_t)(__atomic_load_n(&tm_zone.len, __ATOMIC_RELAXED) >> TM_UNIT_SHIFT);
	uint32_t stop = (uint32_t)tm_bits_min(end, (uint64_t)*from + LOOKS_A_TICK);
	uint32_t at = *from, n = 0;

	for (; at < stop && n < UNITS_A_TICK; at++) {
		if (!is_worth_a_look(ps, at))
			continue;
		__atomic_fetch_or(&tm_zone.units[at].flags, TM_UNIT_TRIED, __ATOMIC_RELAXED);
		unit[n++] = at;
	}
	*from = at < end ? at : 0;
	return n;
}

static bool is_full(int fd, uint32_t unit)
{
	uint64_t page[TM_UNIT_PAGES];
	uintptr_t addr = (uintptr_t)tm_zone_page_addr(unit * TM_UNIT_PAGES);
	uint32_t n = 0;

	if (tm_sys_pread(fd, page, sizeof(page), (long)(addr / TM_PAGE_BYTES * sizeof(page[0]))) !=
	    (long)sizeof(page))
		return false;
	for (uint32_t i = 0; i < TM_UNIT_PAGES; i++)
		n += (page[i] & MAP_OURS) == MAP_OURS;
	return n >= FULL_PAGES;
}

/*
 * Called without a lock: if a unit is purged meanwhile, the kernel refuses or its pages are zero
 * still.
 */
static void make_huge(uint32_t unit, uint32_t units)
{
	int err = tm_zone.os->collapse(tm_zone_page_addr(unit * TM_UNIT_PAGES),
				       (size_t)units << TM_UNIT_SHIFT);

	if (err == 0) {
		tm_huge_stand(unit, units, TM_HUGE_ON_THP);
		collapse.refusals = 0;
	} else if (err == -ENOMEM || err == -EAGAIN) {
		collapse.refusals++;
	}
}

static void collapse_units(const uint32_t *unit, uint32_t n)
{
	int fd = tm_sys_open("/proc/self/pagemap", O_RDONLY, 0);

	if (fd < 0)
		return;
	for (uint32_t i = 0, k; i < n; i = k) {
		k = i + 1;
		if (!is_full(fd, unit[i]))
			continue;
		while (k < n && unit[k] == unit[k - 1] + 1 && is_full(fd, unit[k]))
			k++;
		make_huge(unit[i], k - i);
	}
	tm_sys_close(fd);
}

/* One tick of a part. True: more is to be done. */
static bool tick_part(enum tm_part part)
{
	struct tm_part_state *ps = tm_extent_lock(part);
	uint64_t fresh = ps->fresh_pages, used = ps->mapped_pages - ps->free_pages;
	bool wanted = atomic_load_explicit(&collapse.wanted[part], memory_order_relaxed);
	uint32_t unit[UNITS_A_TICK], n;
	uint32_t *from = &collapse.part[part].unit;

	if (fresh - collapse.part[part].fresh > tm_bits_max(used / QUIET_SHARE, QUIET_PAGES))
		collapse.part[part].quiet = 0;
	else
		collapse.part[part].quiet++;
	collapse.part[part].fresh = fresh;
	if (collapse.part[part].quiet < QUIET_TICKS ||
	    (*from == 0 && !wanted && fresh - collapse.part[part].walked < TM_UNIT_PAGES)) {
		tm_extent_unlock(ps);
		return wanted;
	}
	if (*from == 0)
		collapse.part[part].walked = fresh;
	n = choose(ps, unit, from);
	tm_extent_unlock(ps);
	if (n)
		collapse_units(unit, n);
	if (*from == 0)
		atomic_store_explicit(&collapse.wanted[part], false, memory_order_relaxed);
	return wanted && *from != 0;
}

bool tm_collapse_tick(void)
{
	static const enum tm_part parts[] = {TM_PART_LARGE, TM_PART_PERSISTENT, TM_PART_TEMPORARY};
	bool more = false;

	atomic_store_explicit(&collapse.any, false, memory_order_relaxed);
	if (tm_zone.os->collapse != NULL && tm_huge_allowed() == TM_HUGE_ON_THP &&
	    tm_limit_may_look() && !tm_limit_is_near(TM_UNIT_BYTES) &&
	    collapse.refusals < REFUSALS_MAX && collapse.stayed < PATIENCE_TICKS)
		for (size_t i = 0; i < TM_ARRAY_LEN(parts); i++)
			more |= tick_part(parts[i]);
	collapse.stayed = more ? collapse.stayed + 1 : 0;
	if (more)
		atomic_store_explicit(&collapse.any, true, memory_order_relaxed);
	if (!more)
		for (int i = 0; i < TM_PART_COUNT; i++)
			atomic_store_explicit(&collapse.wanted[i], false, memory_order_relaxed);
	return more;
}

void tm_collapse_clear(void)
{
	for (int i = 0; i < TM_PART_COUNT; i++) {
		atomic_store_explicit(&collapse.wanted[i], false, memory_order_relaxed);
		collapse.part[i].fresh = 0;
		collapse.part[i].walked = 0;
		collapse.part[i].quiet = 0;
		collapse.part[i].unit = 0;
	}
	atomic_store_explicit(&collapse.any, false, memory_order_relaxed);
	collapse.stayed = 0;
	collapse.refusals = 0;
}
