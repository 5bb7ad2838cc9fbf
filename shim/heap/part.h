/* SPDX-License-Identifier: MIT */
/*
 * part: the state of one part. Shared by extent.c (runs and bins), unit.c (what is resident),
 * purge.c (what goes back) and their helpers below, and used by nobody else. All of it is under the
 * part's lock unless said otherwise.
 */
#ifndef TM_HEAP_PART_H
#define TM_HEAP_PART_H

#include "shim/heap/extent.h"
#include "shim/heap/swing.h"
#include "shim/heap/zone.h"
#include "shim/os/lock.h"

#define TM_BIN_STEPS 16u  /* bins per power of two; also the shortest run that is binned */
#define TM_BIN_LEVELS 26u /* runs of up to 2^28 pages, the whole zone */
#define TM_PAGE_NIL ((uint32_t)0x7fffffff)
#define TM_UNIT_NIL UINT32_MAX

#define TM_RECENT_BLOCKS 8u

struct tm_unit_list {
	uint32_t first;
	uint32_t last;
	uint32_t count;
};

struct tm_part_state {
	bool ready;      /* the bins and lists are initialised */
	uint32_t levels; /* bit per level that has a non-empty bin */
	/* pages below this are not reused: a vanished thread may have left their runs half changed */
	uint32_t trusted;
	uint16_t steps[TM_BIN_LEVELS]; /* bit per non-empty bin of the level */
	uint32_t bins[TM_BIN_LEVELS][TM_BIN_STEPS];

	struct tm_unit_list whole;  /* wholly free, maybe resident: oldest first */
	struct tm_unit_list sparse; /* partly free, some free granules maybe resident */
	uint32_t sparse_granules;   /* idle granules of the units in `sparse` */
	uint32_t whole_low;         /* low-water mark of whole.count in this tick */
	uint32_t tick;              /* purge.c's count of ticks */
	struct tm_swing swing;

	uint32_t warm_page;     /* end of the place last taken resident; never inside a run */
	uint64_t cold_pages;    /* made resident since other parts last had to give up memory */
	uint64_t unpaid_pages;  /* of these, what other parts still have to give */
	uint64_t fresh_pages;   /* [atomic] pages made resident by requests, over all time */
	uint32_t settle_unit;   /* settle.c: the unit where the next call continues, */
	uint64_t settle_pages;  /* fresh_pages when the current walk began, */
	uint64_t settled_pages; /* and when the last complete walk began */
	uint64_t mapped_pages;  /* [lock], read without it: */
	uint64_t free_pages;    /* written by tm_part_add only */
	uint64_t purged_pages;
	uint64_t takes;
	uint64_t gives;
	uint64_t zone_steps;
	/* recent.c: blocks given back last; [lock], recent_pages is also read without it */
	struct tm_recent_block {
		uint32_t page;
		uint32_t pages; /* 0: none */
	} recent[TM_RECENT_BLOCKS];
	uint32_t recent_pages; /* sum of their pages, which free_pages contains */
} TM_ALIGNED(TM_CACHE_LINE);

extern TM_HIDDEN struct tm_part_state tm_parts[TM_PART_COUNT];

/*
 * A unit with at most so many unused granules is worth a huge page although they are resident then,
 * as long as idle granules of units in use are few: see tm_part_may_idle.
 */
#define TM_NEARLY_USED_GRANULES (TM_UNIT_GRANULES / 2)
#define TM_IDLE_GRANULES_MAX (((uint32_t)16 << 20) >> TM_GRANULE_SHIFT)

#define TM_TAG_FREE ((uint32_t)1 << 31)

TM_INLINE uint32_t *tm_part_tag(uint32_t page)
{
	return &tm_zone.tags[page];
}

/* [lock] Add to mapped_pages or free_pages; `by` may be negative, in two's complement. */
TM_INLINE void tm_part_add(uint64_t *pages, uint64_t by)
{
	__atomic_store_n(pages, *pages + by, __ATOMIC_RELAXED);
}

/* Pages handed out. Without the lock the two numbers may be of different moments. */
TM_INLINE uint64_t tm_part_used_pages(enum tm_part part)
{
	uint64_t mapped = __atomic_load_n(&tm_parts[part].mapped_pages, __ATOMIC_RELAXED);
	uint64_t unused = __atomic_load_n(&tm_parts[part].free_pages, __ATOMIC_RELAXED);

	return mapped > unused ? mapped - unused : 0;
}

/* Idle pages: free and maybe resident. */
TM_INLINE uint64_t tm_part_idle_pages(const struct tm_part_state *ps)
{
	return (uint64_t)ps->whole.count * TM_UNIT_PAGES +
	       (uint64_t)ps->sparse_granules * TM_GRANULE_PAGES;
}

/*
 * [lock] Whether so many granules of units in use may stay idle: at most this share of what is in
 * use, and only where the program works in steps, which will use them.
 */
TM_INLINE bool tm_part_may_idle(const struct tm_part_state *ps, uint32_t granules, uint32_t share)
{
	return tm_swing_is_step(&ps->swing) && granules <= TM_IDLE_GRANULES_MAX &&
	       granules <= (ps->mapped_pages - ps->free_pages) / TM_GRANULE_PAGES / share;
}

TM_INLINE enum tm_part tm_part_of(const struct tm_part_state *ps)
{
	return (enum tm_part)(ps - tm_parts);
}

/* [lock] True for a unit of this part that is wholly free and on its list. */
TM_INLINE bool tm_unit_is_whole(const struct tm_part_state *ps, uint32_t unit)
{
	const struct tm_unit *u = &tm_zone.units[unit];

	return u->part == tm_part_of(ps) && u->used == 0 && (u->flags & TM_UNIT_LISTED);
}

/* The bin of a run; lengths in one bin differ by less than a sixteenth. */
TM_INLINE void tm_part_bin(uint32_t pages, uint32_t *ret_level, uint32_t *ret_step)
{
	uint32_t log2 = 31 - (uint32_t)__builtin_clz(pages);

	*ret_level = log2 - 4;
	*ret_step = (pages >> (log2 - 4)) & (TM_BIN_STEPS - 1);
}

/* place.c; all need the part's lock unless said otherwise */
struct tm_place {
	uint32_t run; /* first page of the free run that contains the place */
	uint32_t at;
	bool warm; /* found without a search: once it is taken, warm_page is its end */
};

bool tm_place_find(const struct tm_part_state *ps, uint32_t pages, uint32_t align,
		   struct tm_place *best);

/*
 * How many of these pages are not resident, by granules: they were purged or never used. Needs no
 * lock for an approximate answer.
 */
uint32_t tm_place_cold_pages(uint32_t at, size_t pages);

/* Replace the place found by one with fewer non-resident pages, if there is any. */
void tm_place_warmest(const struct tm_part_state *ps, uint32_t pages, uint32_t align,
		      struct tm_place *found);

/* extent.c; the second form leaves the blocks given back last (recent.h) as they are */
struct tm_part_state *tm_extent_lock(enum tm_part part);
struct tm_part_state *tm_extent_lock_as_is(enum tm_part part);
void tm_extent_unlock(struct tm_part_state *ps);
uint32_t tm_extent_run_start(const struct tm_part_state *ps, uint32_t page);
void tm_extent_carve(struct tm_part_state *ps, uint32_t run, uint32_t at, uint32_t pages);
void tm_extent_join(struct tm_part_state *ps, uint32_t start, uint32_t pages, uint32_t *ret_run,
		    uint32_t *ret_pages);

/* Make pages that were handed out free. */
void tm_extent_release(struct tm_part_state *ps, uint32_t page, uint32_t pages);

void tm_extent_relabel(struct tm_part_state *ps, enum tm_part to, uint32_t page, uint32_t pages);

/* unmap.c; [part lock] address space goes back; return the bytes */
size_t tm_unmap_end(struct tm_part_state *ps, uint32_t keep_units);
size_t tm_unmap_all(enum tm_part part); /* takes the lock */

/* purge.c: a window of the part's swing ended; note a surplus */
void tm_purge_consider(const struct tm_part_state *ps);

/* recent.c; [part lock] the blocks given back last become ordinary free memory */
void tm_recent_flush(struct tm_part_state *ps);

/* settle.c; [part lock] prefault the page tables of reused memory */
void tm_settle(struct tm_part_state *ps);

/* unit.c */
void tm_unit_init(struct tm_part_state *ps);
void tm_unit_take(struct tm_part_state *ps, uint32_t page, uint32_t pages);
void tm_unit_take_edges(struct tm_part_state *ps, uint32_t page, uint32_t pages);
void tm_unit_unlist(struct tm_part_state *ps, uint32_t at);
void tm_unit_enlist(struct tm_part_state *ps, uint32_t at);
struct tm_unit_run {
	uint32_t page, pages;
};
void tm_unit_zero(const struct tm_unit *u, uint32_t page, uint32_t from, uint32_t to,
		  struct tm_unit_run *run);
void tm_unit_zero_run(const struct tm_unit_run *run);
bool tm_unit_spare(struct tm_part_state *ps, uint32_t at);
uint32_t tm_unit_youngest(const struct tm_part_state *ps, uint32_t units);
void tm_unit_age(struct tm_part_state *ps, uint32_t at, uint32_t tick);
void tm_unit_give(struct tm_part_state *ps, uint32_t page, uint32_t pages, uint32_t run,
		  uint32_t run_pages);

#endif
