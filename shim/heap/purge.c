/* SPDX-License-Identifier: MIT */
#include "shim/heap/purge.h"

#include "shim/base/bits.h"
#include "shim/heap/collapse.h"
#include "shim/heap/dense.h"
#include "shim/heap/grow.h"
#include "shim/heap/huge.h"
#include "shim/heap/part.h"
#include "shim/heap/tier.h"
#include "shim/os/clock.h"

#define WINDOW_MAX 64u /* ticks remembered: longer decays use the marks of the last 6.4 s */

/* Non-resident units at the end of a part that stay mapped. */
#define SPARE_ADDRESS_UNITS 16u

#define IDLE_UNITS_MIN 4u /* a part with fewer idle units gives none to blocks of another */
/*
 * While freed ranges of grown blocks are too small in all to start a helper, this many units of
 * them are purged per unit made resident elsewhere: a doubled buffer's last half was often not
 * written.
 */
#define GROWN_FACTOR 4u

/* Units per madvise call: 8 units of huge pages take about 100 us. */
#define RUN_UNITS_MAX 8u

/*
 * Units that a thread of the program purges per call, about .6 ms of small pages; others do the
 * rest.
 */
#define CALLER_UNITS (TM_PURGE_CALLER_BYTES / TM_UNIT_BYTES)

/*
 * Idle granules of units that are in use: purging them splits huge pages, and they come back as 4
 * KiB pages at eight times the price. So they stay while they are few beside what is live. Once
 * nothing happened in their unit for SPARSE_DECAYS decays, all but SPARSE_KEEP_BYTES go, and those
 * for which collapse.c would make the same huge page again.
 */
#define SPARSE_SHARE 10u /* of live memory: a tenth */
#define SPARSE_DECAYS 3u
#define SPARSE_KEEP_BYTES ((size_t)1 << 20)

/*
 * Idle memory that stays at least when a swing's surplus is purged, and the share of live memory up
 * to which idle granules of units in use are no surplus: the next blocks find them resident.
 */
#define SWING_KEEP_BYTES ((size_t)8 << 20)
#define SWING_SPARSE_SHARE 32u

static struct tm_lock purge_lock = TM_LOCK_INIT(TM_RANK_PURGE);

static struct {
	uint64_t last_ms;
	struct {
		uint32_t low[WINDOW_MAX]; /* ring: low-water marks of free units, one per tick */
		uint32_t ticks;
	} window[TM_PART_COUNT];
	size_t left_bytes;            /* bytes this call may still give back */
	uint32_t owed[TM_PART_COUNT]; /* surplus units not purged yet */
	size_t longest_bytes;         /* most that a thread of the program gave back in one call */
} purge;

static uint32_t decay_ticks(enum tm_part part)
{
	uint32_t ticks =
		(tm_purge_policy_of(part)->decay_ms + TM_PURGE_TICK_MS - 1) / TM_PURGE_TICK_MS;

	return ticks ? ticks : 1;
}

static uint32_t unit_granules_mask(uint32_t from, uint32_t to)
{
	return (UINT32_MAX << from) & (UINT32_MAX >> (TM_UNIT_GRANULES - to));
}

/* Whole granules of free memory to be purged. */
struct piece {
	uint32_t page;
	uint32_t pages;
};

/* Mark the granules of a piece used, while it is cut out of the free memory. */
static void mark_cut(struct tm_part_state *ps, struct piece piece)
{
	for (uint32_t page = piece.page; page < piece.page + piece.pages;
	     page += TM_GRANULE_PAGES) {
		uint32_t at = page / TM_UNIT_PAGES;

		tm_unit_unlist(ps, at);
		tm_zone.units[at].used |= 1u << (page % TM_UNIT_PAGES / TM_GRANULE_PAGES);
		tm_unit_enlist(ps, at);
	}
}

static void mark_given(struct tm_part_state *ps, struct piece piece, bool ok)
{
	uint32_t end = piece.page + piece.pages;

	for (uint32_t page = piece.page; page < end;) {
		uint32_t at = page / TM_UNIT_PAGES;
		uint32_t base = at * TM_UNIT_PAGES;
		uint32_t to = (uint32_t)tm_bits_min(end - base, TM_UNIT_PAGES) / TM_GRANULE_PAGES;
		uint32_t mask = unit_granules_mask((page - base) / TM_GRANULE_PAGES, to);
		struct tm_unit *u = &tm_zone.units[at];

		tm_unit_unlist(ps, at);
		if (ok) {
			__atomic_store_n(&u->touched, u->touched & ~mask, __ATOMIC_RELAXED);
			__atomic_fetch_and(&u->flags, (uint8_t)~TM_UNIT_TRIED, __ATOMIC_RELAXED);
			u->looks = 0;
			if (mask == UINT32_MAX)
				u->fresh = 0;
		} else {
			u->flags |= TM_UNIT_KEPT;
		}
		tm_unit_enlist(ps, at);
		page = base + TM_UNIT_PAGES;
	}
}

/*
 * Purge a piece of one free run; returns the bytes. Drops the lock: the caller's cursors are void
 * after.
 */
static size_t give_back(struct tm_part_state *ps, struct piece piece)
{
	uint32_t low = ps->whole_low;
	uint32_t count = ps->whole.count;
	uint32_t run, run_pages;
	bool ok;

	tm_extent_carve(ps, tm_extent_run_start(ps, piece.page), piece.page, piece.pages);
	mark_cut(ps, piece);
	/* the drop in free units that this causes is no demand of the program */
	count -= ps->whole.count;
	ps->whole_low = low > count ? low - count : 0;
	tm_extent_unlock(ps);

	ok = tm_zone.os->dontneed(tm_zone_page_addr(piece.page),
				  (size_t)piece.pages << TM_PAGE_SHIFT) == 0;

	(void)tm_extent_lock(tm_part_of(ps));
	mark_given(ps, piece, ok);
	tm_extent_join(ps, piece.page, piece.pages, &run, &run_pages);
	tm_unit_give(ps, piece.page, piece.pages, run, run_pages);
	if (!ok)
		return 0;
	ps->purged_pages += piece.pages;
	return (size_t)piece.pages << TM_PAGE_SHIFT;
}

enum age {
	AGE_ANY,
	AGE_TICK, /* free since an earlier tick */
};

/* The oldest wholly free unit with free neighbours; AGE_TICK: without those freed in this tick. */
static struct piece oldest_units(const struct tm_part_state *ps, uint32_t units_max, enum age age)
{
	uint32_t end = (uint32_t)(__atomic_load_n(&tm_zone.len, __ATOMIC_RELAXED) >> TM_UNIT_SHIFT);
	uint32_t from = ps->whole.first;
	uint32_t to = from + 1;

	while (to < end && to - from < units_max && tm_unit_is_whole(ps, to) &&
	       (age == AGE_ANY || tm_zone.units[to].tick != ps->tick))
		to++;
	while (from > 0 && to - from < units_max && tm_unit_is_whole(ps, from - 1) &&
	       (age == AGE_ANY || tm_zone.units[from - 1].tick != ps->tick))
		from--;
	return (struct piece){from * TM_UNIT_PAGES, (to - from) * TM_UNIT_PAGES};
}

static size_t purge_whole(struct tm_part_state *ps, uint32_t units)
{
	size_t bytes = 0;

	while (units && ps->whole.count) {
		struct piece piece =
			oldest_units(ps, (uint32_t)tm_bits_min(units, RUN_UNITS_MAX), AGE_TICK);

		units -= (uint32_t)tm_bits_min(units, piece.pages / TM_UNIT_PAGES);
		bytes += give_back(ps, piece);
	}
	return bytes;
}

/* The unit's first run of idle granules (touched and unused); it must have some. */
static struct piece first_idle(uint32_t at)
{
	const struct tm_unit *u = &tm_zone.units[at];
	uint32_t idle = u->touched & ~u->used;
	uint32_t from = tm_bits_lowest(idle);
	uint32_t to = tm_bits_lowest(~(uint64_t)(idle >> from)) + from;

	return (struct piece){at * TM_UNIT_PAGES + from * TM_GRANULE_PAGES,
			      (to - from) * TM_GRANULE_PAGES};
}

/* Purge idle granules of units unchanged for `ticks` ticks, down to keep_bytes. Returns bytes. */
static size_t purge_sparse(struct tm_part_state *ps, uint32_t ticks, size_t keep_bytes,
			   size_t bytes_max)
{
	size_t bytes = 0;

	while (ps->sparse.count && bytes < bytes_max) {
		uint32_t at = ps->sparse.first;
		uint32_t tick = tm_zone.units[at].tick;

		if (((size_t)ps->sparse_granules << TM_GRANULE_SHIFT) <= keep_bytes ||
		    ps->tick - tick < ticks)
			break;
		if (keep_bytes != 0 && tm_unit_spare(ps, at))
			continue;
		/* the rest of the unit keeps its age, at the head of the list */
		bytes += give_back(ps, first_idle(at));
		tm_unit_age(ps, at, tick);
	}
	return bytes;
}

/* Count bytes given back against the limit of the current call. */
static void spend(size_t bytes)
{
	purge.left_bytes -= tm_bits_min(purge.left_bytes, bytes);
}

static uint32_t units_left(uint32_t units)
{
	return (uint32_t)tm_bits_min(units, purge.left_bytes >> TM_UNIT_SHIFT);
}

/*
 * Units that were free at every tick of the decay: the lowest of its marks, `low` being the newest.
 */
static uint32_t unneeded(enum tm_part part, uint32_t low, uint32_t ticks)
{
	uint32_t n = (uint32_t)tm_bits_min(ticks, WINDOW_MAX);
	uint32_t least = low;

	purge.window[part].low[purge.window[part].ticks++ % WINDOW_MAX] = low;
	if (purge.window[part].ticks < n)
		return 0;
	for (uint32_t i = 1; i <= n; i++) {
		uint32_t at = (purge.window[part].ticks - i) % WINDOW_MAX;

		least = (uint32_t)tm_bits_min(least, purge.window[part].low[at]);
	}
	return least;
}

/* Subtract units that are purged now from earlier low-water marks, which count them. */
static void forget_purged(enum tm_part part, uint32_t units)
{
	for (uint32_t i = 0; i < WINDOW_MAX; i++) {
		uint32_t *low = &purge.window[part].low[i];

		*low -= (uint32_t)tm_bits_min(*low, units);
	}
}

/* Idle granules of units in use that a swing's surplus may contain. */
static uint64_t sparse_pages(const struct tm_part_state *ps)
{
	uint64_t pages = (uint64_t)ps->sparse_granules * TM_GRANULE_PAGES;
	uint64_t keep = (ps->mapped_pages - ps->free_pages) / SWING_SPARSE_SHARE;

	if (tm_purge_is_eager())
		return pages;
	return pages > keep ? pages - keep : 0;
}

static uint64_t surplus_pages(const struct tm_part_state *ps)
{
	const struct tm_purge_policy *policy = tm_purge_policy_of(tm_part_of(ps));
	size_t keep = tm_bits_max(policy->keep_bytes, SWING_KEEP_BYTES);

	/* a decay set longer than the default is respected */
	if (policy->decay_ms > TM_PURGE_USUAL_DECAY_MS)
		return 0;
	if (tm_purge_is_eager())
		return tm_part_idle_pages(ps);
	return tm_bits_min(tm_swing_surplus(&ps->swing, ps->mapped_pages - ps->free_pages,
					    tm_part_idle_pages(ps), keep >> TM_PAGE_SHIFT),
			   (uint64_t)ps->whole.count * TM_UNIT_PAGES + sparse_pages(ps));
}

void tm_purge_consider(const struct tm_part_state *ps)
{
	if (surplus_pages(ps) >= TM_UNIT_PAGES)
		tm_purge_note_surplus();
}

/* Purge about this many pages of the oldest idle granules of units in use. Returns how many. */
static uint64_t purge_granules(struct tm_part_state *ps, uint64_t pages)
{
	uint64_t done = 0;

	while (done < pages && ps->sparse.count) {
		uint32_t at = ps->sparse.first;
		uint32_t tick = tm_zone.units[at].tick;
		struct piece piece = first_idle(at);

		done += piece.pages;
		(void)give_back(ps, piece);
		tm_unit_age(ps, at, tick);
	}
	return done;
}

static void purge_swing(struct tm_part_state *ps)
{
	uint64_t pages = tm_bits_min(surplus_pages(ps), purge.left_bytes >> TM_PAGE_SHIFT), done;

	if (pages < TM_UNIT_PAGES)
		return;
	done = purge_whole(ps, (uint32_t)(pages / TM_UNIT_PAGES)) >> TM_PAGE_SHIFT;
	if (done < pages)
		done += purge_granules(ps, tm_bits_min(pages - done, sparse_pages(ps)));
	tm_swing_purged(&ps->swing, done);
	spend((size_t)done << TM_PAGE_SHIFT);
}

/* Purge surplus units that a tick found, as many as the current call may. */
static void pay(struct tm_part_state *ps)
{
	enum tm_part part = tm_part_of(ps);
	uint32_t units = units_left(purge.owed[part]);

	if (units == 0)
		return;
	spend(purge_whole(ps, units));
	forget_purged(part, units);
	purge.owed[part] -= units;
}

static void pay_all(void)
{
	for (int i = 0; i < TM_PART_COUNT; i++) {
		if (purge.owed[i] == 0)
			continue;
		struct tm_part_state *ps = tm_extent_lock((enum tm_part)i);

		pay(ps);
		tm_extent_unlock(ps);
	}
}

/* One tick of a part. Returns the bytes that later ticks may give back. */
static size_t tick_part(enum tm_part part)
{
	const struct tm_purge_policy *policy = tm_purge_policy_of(part);
	struct tm_part_state *ps = tm_extent_lock(part);
	uint32_t ticks = decay_ticks(part);
	uint32_t keep = (uint32_t)tm_bits_min(policy->keep_bytes >> TM_UNIT_SHIFT, UINT32_MAX);
	uint32_t units = unneeded(part, ps->whole_low, ticks);
	size_t left = 0;
	size_t live, keep_sparse;

	ps->tick++;
	ps->whole_low = ps->whole.count;
	if (tm_purge_is_eager())
		units = ps->whole.count;
	purge.owed[part] = units > keep ? units - keep : 0;
	pay(ps);
	live = (size_t)(ps->mapped_pages - ps->free_pages) << TM_PAGE_SHIFT;
	keep_sparse = tm_bits_min(policy->keep_bytes, SPARSE_KEEP_BYTES);
	spend(purge_sparse(ps, ticks,
			   tm_purge_is_eager() ? 0 : tm_bits_max(keep_sparse, live / SPARSE_SHARE),
			   purge.left_bytes));
	spend(purge_sparse(ps, ticks * SPARSE_DECAYS, keep_sparse, purge.left_bytes));
	(void)tm_unmap_end(ps, SPARE_ADDRESS_UNITS);
	tm_huge_tick(part);
	if (ps->whole.count > keep)
		left += (size_t)(ps->whole.count - keep) << TM_UNIT_SHIFT;
	if ((size_t)ps->sparse_granules << TM_GRANULE_SHIFT > SPARSE_KEEP_BYTES)
		left += (size_t)ps->sparse_granules << TM_GRANULE_SHIFT;
	tm_extent_unlock(ps);
	return left;
}

/* To give back no more than this: SIZE_MAX for the helper. */
static bool lock_purge(size_t bytes_max)
{
	if (!tm_lock_try_steal(&purge_lock))
		return false;
	if (TM_UNLIKELY(!purge_lock.registered))
		tm_lock_register(&purge_lock);
	purge.left_bytes = bytes_max;
	return true;
}

TM_AT_START_CODE void tm_purge_init(void)
{
	if (lock_purge(SIZE_MAX))
		tm_lock_release(&purge_lock);
}

/* A tick that comes a little early counts: timers and clocks have their own granularity. */
static bool is_early(uint64_t now_ms)
{
	return now_ms - purge.last_ms < TM_PURGE_TICK_MS * 3 / 4;
}

/* [purge lock] Gives back no more than purge.left_bytes. */
static size_t tick(uint64_t now_ms)
{
	size_t left = 0;

	purge.last_ms = now_ms;
	tm_dense_tick();
	for (int i = 0; i < TM_PART_COUNT; i++)
		if (i != TM_PART_GROW)
			left += tick_part((enum tm_part)i);
	left += tm_grow_tick(decay_ticks(TM_PART_GROW),
			     tm_purge_policy_of(TM_PART_GROW)->keep_bytes, purge.left_bytes);
	return left;
}

/* Records what a thread of the program gave back. */
static void unlock_purge(size_t bytes_max)
{
	if (bytes_max != SIZE_MAX)
		purge.longest_bytes =
			tm_bits_max(purge.longest_bytes, bytes_max - purge.left_bytes);
	tm_lock_release(&purge_lock);
}

static size_t tick_within(uint64_t now_ms, size_t bytes_max)
{
	size_t left = 1;

	if (!tm_purge_gives_back())
		return 0;
	if (!lock_purge(bytes_max))
		return 1;
	if (is_early(now_ms)) {
		pay_all();
	} else {
		left = tick(now_ms);
		/* only the helper, since this takes no time from the program's threads */
		if (bytes_max == SIZE_MAX && tm_purge_mode() == TM_PURGE_TICKING &&
		    tm_collapse_tick())
			left++;
	}
	unlock_purge(bytes_max);
	return left;
}

size_t tm_purge_tick(uint64_t now_ms)
{
	return tick_within(now_ms, SIZE_MAX);
}

void tm_purge_tick_by_caller(uint64_t now_ms)
{
	(void)tick_within(now_ms, TM_PURGE_CALLER_BYTES);
}

size_t tm_purge_longest(void)
{
	return purge.longest_bytes;
}

static void purge_surplus(size_t bytes_max)
{
	if (!tm_purge_take_surplus() || !tm_purge_gives_back() || !lock_purge(bytes_max))
		return;
	for (int i = 0; i < TM_PART_COUNT; i++)
		if (i != TM_PART_GROW) {
			struct tm_part_state *ps = tm_extent_lock((enum tm_part)i);

			purge_swing(ps);
			tm_extent_unlock(ps);
		}
	unlock_purge(bytes_max);
}

void tm_purge_surplus(void)
{
	purge_surplus(SIZE_MAX);
}

void tm_purge_surplus_by_caller(void)
{
	purge_surplus(TM_PURGE_CALLER_BYTES);
}

static size_t purge_all(enum tm_part part)
{
	struct tm_part_state *ps = tm_extent_lock(part);
	size_t bytes;

	/* so that units which became free in this tick count as old */
	ps->tick++;
	bytes = purge_whole(ps, UINT32_MAX);
	ps->tick++;
	bytes += purge_sparse(ps, 1, 0, SIZE_MAX);
	bytes += tm_unmap_end(ps, 0);
	tm_extent_unlock(ps);
	return bytes;
}

size_t tm_purge_tier(enum tm_tier tier)
{
	size_t bytes = 0;

	for (int i = 0; i < TM_PART_COUNT; i++)
		if (i != TM_PART_GROW &&
		    (tier == TM_TIER_ALL || tm_tier_of_part((enum tm_part)i) == tier))
			bytes += purge_all((enum tm_part)i);
	if (tier == TM_TIER_ALL || tier == TM_TIER_SESSION)
		bytes += tm_grow_release();
	return bytes;
}

size_t tm_purge_now(void)
{
	return tm_purge_tier(TM_TIER_ALL);
}

/* Idle units that another part must have before it gives any for a request of `part`. */
static uint32_t idle_units(enum tm_part part, size_t pages)
{
	size_t units = (pages + TM_UNIT_PAGES - 1) / TM_UNIT_PAGES;

	return (uint32_t)tm_bits_max(units, part == TM_PART_SPAN ? 1 : IDLE_UNITS_MIN);
}

/* Freed ranges wait for the next grown block, unless others are about to make a unit resident. */
static bool grown_lie_idle(size_t fresh)
{
	return fresh >= TM_UNIT_PAGES && tm_grow_retained() >= TM_UNIT_BYTES;
}

bool tm_purge_others_idle(enum tm_part part, size_t fresh)
{
	for (int i = 0; i < TM_PART_COUNT; i++)
		if (i != (int)part && __atomic_load_n(&tm_parts[i].whole.count, __ATOMIC_RELAXED) >=
					      idle_units(part, fresh))
			return true;
	return grown_lie_idle(fresh);
}

/*
 * Make idle units part `to`'s, at least `pages` pages in one piece. True: done, `ps` is unlocked.
 */
static bool take_over(struct tm_part_state *ps, enum tm_part to, size_t pages)
{
	struct piece piece = oldest_units(ps, idle_units(to, pages), AGE_ANY);

	if (piece.pages < pages)
		return false;
	tm_extent_carve(ps, tm_extent_run_start(ps, piece.page), piece.page, piece.pages);
	tm_extent_relabel(ps, to, piece.page, piece.pages);
	return true;
}

bool tm_purge_use_others(enum tm_part part, size_t pages, size_t fresh)
{
	size_t wanted = part == TM_PART_SPAN ? tm_bits_max(pages, fresh) : pages;
	bool came = false;

	for (int i = 0; i < TM_PART_COUNT && !came; i++) {
		struct tm_part_state *ps;

		if (i == (int)part || i == TM_PART_GROW)
			continue;
		ps = tm_extent_lock((enum tm_part)i);
		if (ps->whole.count < idle_units(part, wanted)) {
			tm_extent_unlock(ps);
			continue;
		}
		if (part != TM_PART_SPAN && take_over(ps, part, pages)) {
			came = true;
			continue;
		}
		(void)purge_whole(ps,
				  (uint32_t)tm_bits_min(idle_units(part, wanted), CALLER_UNITS));
		tm_extent_unlock(ps);
	}
	if (!came && grown_lie_idle(fresh)) {
		size_t factor = tm_grow_retained() < TM_PURGE_KICK_BYTES ? GROWN_FACTOR : 1;

		(void)tm_grow_give(tm_bits_min(fresh / TM_UNIT_PAGES * factor, CALLER_UNITS));
	}
	return came;
}
