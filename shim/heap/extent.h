/* SPDX-License-Identifier: MIT */
/*
 * extent: keeps the free memory of a part as maximal runs of 4 KiB pages. Memory given back is
 * coalesced at once with its free neighbours of the same part.
 *
 * A run's description lies in the zone's tag table, which has one word per page, so giving memory
 * back can't fail and free memory itself is never written. The words of the first and last page
 * hold TAG_FREE | pages; of runs of 16 pages and more the second and third word link the run into
 * its bin. Shorter runs are in no bin: they are too short for any request and wait until a
 * neighbour is freed. Bins are two-level (powers of two, sixteen steps each) with bitmaps; of a few
 * candidates in a bin the one at the lowest address is taken.
 *
 * One lock per part; any thread may call. The zone's lock is taken inside it. The unit table says
 * which granules are handed out (used) and which may be resident (touched), see zone.h.
 *
 * Invariants (tm_extent_check): no two free runs of a part touch; tags are where runs begin and end
 * and nowhere else; every run of 16 pages and more is in the bin of its length and the bitmaps say
 * so; unit.used has exactly the granules that no run covers; the page counts and the lists of units
 * with memory to give back agree with the units.
 */
#ifndef TM_HEAP_EXTENT_H
#define TM_HEAP_EXTENT_H

#include "shim/heap/zone.h"

struct tm_part_stats {
	size_t mapped_bytes;   /* mapped for the part now */
	size_t free_bytes;     /* not handed out */
	size_t retained_bytes; /* wholly free units that may be resident */
	size_t sparse_bytes;   /* free granules of other units that may be resident */
	size_t purged_bytes;   /* given back to the kernel, over all time */
	uint64_t takes;
	uint64_t gives;
	uint64_t steps; /* times the zone grew for this part */
};

/*
 * At boot, after the zone: registers every part's lock with the fork handlers. If a lock were
 * registered at first use, that use could be in another library's fork handler, which would then
 * wait for the very walk over the locks that it runs in.
 */
void tm_extent_init(void);

/*
 * Take pages of memory, aligned to align_pages (a power of two), lowest address preferred. NULL
 * when no memory can be had. Contents are undefined.
 */
void *tm_extent_take(enum tm_part part, size_t pages, size_t align_pages);

/* The same with every byte zero; pages known to be zero are not written. */
void *tm_extent_take_zero(enum tm_part part, size_t pages, size_t align_pages);

/*
 * The same for a longer copy of a block that grows: its pages will be written, see tm_dense_grown.
 */
void *tm_extent_take_grown(enum tm_part part, size_t pages);

/* Take exactly these pages if they are free, so that a block can grow in place. */
bool tm_extent_take_at(enum tm_part part, void *start, size_t pages);

/*
 * Give pages back, all or a part of what was taken. Calls the kernel only for pages that the
 * program had tainted (zone.h); if they can't be cleansed, they are never reused.
 */
void tm_extent_give(enum tm_part part, void *start, size_t pages);

/* True if some free run of the part has room for this many pages. */
bool tm_extent_fits(enum tm_part part, size_t pages);

/*
 * Give wholly free units of one free run to another part, at most units_max. False: none are free.
 */
bool tm_extent_hand_over(enum tm_part from, enum tm_part to, size_t units_max);

/* True: less than this is free and resident, so the part would grow. Takes no lock; approximate. */
bool tm_extent_lacks(enum tm_part part, size_t bytes);

/* Bytes handed out that were not resident then, over all time. Takes no lock; approximate. */
size_t tm_extent_fresh_bytes(enum tm_part part);

/* Bytes handed out by all parts now. Takes no lock; approximate. */
size_t tm_extent_used_bytes(void);

void tm_extent_stats(enum tm_part part, struct tm_part_stats *ret_stats);

/* Check the invariants above: NULL, or the one that is broken. Takes the lock. */
const char *tm_extent_check(enum tm_part part);

/* Reset all parts; tests only. */
void tm_extent_clear(void);

#endif
