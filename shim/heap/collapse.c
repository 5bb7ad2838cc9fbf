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
 * by then, if it ever will be, and each unit is examined, for the last time until it is purged.
 */
#define QUIET_TICKS 10u
/*
 * A part that isn't quiet may have units that are: nearly all of it was in use at this many ticks
 * in a row, twice as many after each look at it that found it not full.
 */
#define SETTLED_TICKS 2u
#define BUSY_MAX 255u
#define LOOKS_MAX 8u /* SETTLED_TICKS << 8 is more than BUSY_MAX */
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
/*
 * Of the pages that may be resident this share need not be: what isn't becomes resident. Units of a
 * part that isn't quiet are many and come again and again, so there it is less.
 */
#define FULL_SHARE 32u
#define FULL_SHARE_BUSY 128u
/*
 * A unit of which the rest is not resident gets a huge page after this many such ticks, while idle
 * granules of units in use are no more than this share of what is in use.
 */
#define FILL_TICKS 4u
#define FILL_SHARE 8u
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
		uint64_t fresh;   /* fresh_pages of the part at the last tick, */
		uint64_t walked;  /* and when the last walk over its units began */
		uint32_t quiet;   /* ticks */
		uint32_t unit;    /* where the walk continues; 0: at the beginning */
		uint32_t settled; /* the same of the walk while the part isn't quiet */
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

/* A unit to examine. */
struct look {
	uint32_t unit;
	uint32_t full; /* pages that must be resident and mapped by this process alone */
	bool fill;     /* not all of its granules may be resident */
	bool filled;   /* they are now */
};

static bool is_settled(const struct tm_unit *u, uint32_t ticks)
{
	return u->busy >= tm_bits_min((uint64_t)ticks << u->looks, BUSY_MAX);
}

/* [part lock] Count the ticks at which nearly all of the unit was in use. */
static void count_busy(struct tm_unit *u)
{
	if ((uint32_t)__builtin_popcount(~u->used) > TM_NEARLY_USED_GRANULES)
		u->busy = 0;
	else if (u->busy < BUSY_MAX)
		u->busy++;
}

/*
 * [part lock] True if the unit's other granules may become resident for the sake of those in use,
 * besides `planned` ones of other units.
 */
static bool may_fill(const struct tm_part_state *ps, const struct tm_unit *u, uint32_t touched,
		     uint32_t planned)
{
	uint32_t more = planned + (uint32_t)__builtin_popcount(~touched);

	/* what is in use but not touched yet is just being zeroed */
	return is_settled(u, FILL_TICKS) && (u->used & ~touched) == 0 &&
	       tm_part_may_idle(ps, ps->sparse_granules + more, FILL_SHARE);
}

/*
 * [part lock] True for a unit that may be full of written small pages, or nearly, and is, or soon
 * will be, in use.
 */
static bool is_worth_a_look(const struct tm_part_state *ps, const struct tm_unit *u, bool quiet,
			    uint32_t planned)
{
	uint32_t touched = __atomic_load_n(&u->touched, __ATOMIC_RELAXED);

	if ((u->flags & (TM_UNIT_TRIED | TM_UNIT_HUGETLB)) ||
	    __atomic_load_n(&u->tainted, __ATOMIC_RELAXED))
		return false;
	if (touched != UINT32_MAX)
		return may_fill(ps, u, touched, planned);
	return quiet ? u->used != 0 || tm_swing_is_step(&ps->swing) : is_settled(u, SETTLED_TICKS);
}

/* [part lock] Choose the next units to examine and mark them tried. Returns how many. */
static uint32_t choose(const struct tm_part_state *ps, struct look *looks, uint32_t *from,
		       bool quiet)
{
	uint32_t end = (uint32_t)(__atomic_load_n(&tm_zone.len, __ATOMIC_RELAXED) >> TM_UNIT_SHIFT);
	uint32_t stop = (uint32_t)tm_bits_min(end, (uint64_t)*from + LOOKS_A_TICK);
	uint32_t at = *from, planned = 0, n = 0;

	for (; at < stop && n < UNITS_A_TICK; at++) {
		struct tm_unit *u = &tm_zone.units[at];
		uint32_t pages;
		bool fill;

		if (__atomic_load_n(&u->part, __ATOMIC_RELAXED) != tm_part_of(ps))
			continue;
		count_busy(u);
		if (!is_worth_a_look(ps, u, quiet, planned))
			continue;
		fill = u->touched != UINT32_MAX;
		pages = (uint32_t)__builtin_popcount(u->touched) * TM_GRANULE_PAGES;
		planned += (uint32_t)__builtin_popcount(~u->touched);
		__atomic_fetch_or(&u->flags, TM_UNIT_TRIED, __ATOMIC_RELAXED);
		looks[n++] = (struct look){
			at, pages - pages / (quiet || fill ? FULL_SHARE : FULL_SHARE_BUSY), fill,
			false};
	}
	*from = at < end ? at : 0;
	return n;
}

static bool is_full(int fd, const struct look *look)
{
	uint64_t page[TM_UNIT_PAGES];
	uintptr_t addr = (uintptr_t)tm_zone_page_addr(look->unit * TM_UNIT_PAGES);
	uint32_t n = 0;

	if (tm_sys_pread(fd, page, sizeof(page), (long)(addr / TM_PAGE_BYTES * sizeof(page[0]))) !=
	    (long)sizeof(page))
		return false;
	for (uint32_t i = 0; i < TM_UNIT_PAGES; i++)
		n += (page[i] & MAP_OURS) == MAP_OURS;
	return n >= look->full;
}

/*
 * Called without a lock: if a unit is purged meanwhile, the kernel refuses or its pages are zero
 * still. It refuses units for which huge pages were declined, too.
 */
static bool make_huge(enum tm_part part, uint32_t unit, uint32_t units)
{
	void *at = tm_zone_page_addr(unit * TM_UNIT_PAGES);
	size_t bytes = (size_t)units << TM_UNIT_SHIFT;
	int err = tm_zone.os->collapse(at, bytes);

	if (err == -EINVAL) {
		struct tm_part_state *ps = tm_extent_lock(part);

		tm_huge_advise(unit * TM_UNIT_PAGES, units);
		tm_extent_unlock(ps);
		err = tm_zone.os->collapse(at, bytes);
	}
	if (err == 0) {
		tm_huge_stand(unit, units, TM_HUGE_ON_THP);
		collapse.refusals = 0;
	} else if (err == -ENOMEM || err == -EAGAIN) {
		collapse.refusals++;
	}
	return err == 0;
}

/* Returns a bit for each unit that was not full. */
static uint32_t collapse_units(enum tm_part part, struct look *looks, uint32_t n)
{
	int fd = tm_sys_open("/proc/self/pagemap", O_RDONLY, 0);
	uint32_t sparse = 0;

	if (fd < 0)
		return 0;
	for (uint32_t i = 0, k; i < n; i = k) {
		k = i + 1;
		if (!is_full(fd, &looks[i])) {
			sparse |= 1u << i;
			continue;
		}
		while (k < n && looks[k].unit == looks[k - 1].unit + 1 && !looks[i].fill &&
		       !looks[k].fill && is_full(fd, &looks[k]))
			k++;
		if (make_huge(part, looks[i].unit, k - i))
			looks[i].filled = looks[i].fill;
	}
	tm_sys_close(fd);
	return sparse;
}

/* The whole unit is resident, although not all of it was handed out. */
static void note_filled(struct tm_part_state *ps, uint32_t unit)
{
	struct tm_unit *u = &tm_zone.units[unit];

	if (u->part != tm_part_of(ps))
		return;
	tm_unit_unlist(ps, unit);
	__atomic_store_n(&u->touched, UINT32_MAX, __ATOMIC_RELAXED);
	u->fresh = TM_UNIT_PAGES;
	tm_unit_enlist(ps, unit);
}

static void note_looks(enum tm_part part, const struct look *looks, uint32_t n, uint32_t again)
{
	struct tm_part_state *ps = tm_extent_lock(part);

	for (uint32_t i = 0; i < n; i++) {
		struct tm_unit *u = &tm_zone.units[looks[i].unit];

		if (looks[i].filled)
			note_filled(ps, looks[i].unit);
		if (again >> i & 1) {
			__atomic_fetch_and(&u->flags, (uint8_t)~TM_UNIT_TRIED, __ATOMIC_RELAXED);
			if (u->looks < LOOKS_MAX)
				u->looks++;
			u->busy = 0;
		}
	}
	tm_extent_unlock(ps);
}

/* [part lock] Whether the part is quiet at this tick. */
static bool is_quiet(const struct tm_part_state *ps)
{
	uint64_t fresh = ps->fresh_pages, used = ps->mapped_pages - ps->free_pages;
	enum tm_part part = tm_part_of(ps);

	if (fresh - collapse.part[part].fresh > tm_bits_max(used / QUIET_SHARE, QUIET_PAGES))
		collapse.part[part].quiet = 0;
	else
		collapse.part[part].quiet++;
	collapse.part[part].fresh = fresh;
	return collapse.part[part].quiet >= QUIET_TICKS;
}

/* One tick of a part. True: more is to be done. */
static bool tick_part(enum tm_part part)
{
	struct tm_part_state *ps = tm_extent_lock(part);
	bool wanted = atomic_load_explicit(&collapse.wanted[part], memory_order_relaxed);
	bool quiet = is_quiet(ps);
	uint32_t *from = quiet ? &collapse.part[part].unit : &collapse.part[part].settled;
	struct look looks[UNITS_A_TICK];
	uint32_t n, sparse;

	if (*from == 0 && !wanted && ps->fresh_pages - collapse.part[part].walked < TM_UNIT_PAGES) {
		tm_extent_unlock(ps);
		return false;
	}
	if (quiet && *from == 0)
		collapse.part[part].walked = ps->fresh_pages;
	n = choose(ps, looks, from, quiet);
	tm_extent_unlock(ps);
	if (n) {
		sparse = collapse_units(part, looks, n);
		note_looks(part, looks, n, quiet ? 0 : sparse);
	}
	if (quiet && *from == 0)
		atomic_store_explicit(&collapse.wanted[part], false, memory_order_relaxed);
	return wanted && (!quiet || *from != 0);
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
		collapse.part[i].settled = 0;
	}
	atomic_store_explicit(&collapse.any, false, memory_order_relaxed);
	collapse.stayed = 0;
	collapse.refusals = 0;
}
