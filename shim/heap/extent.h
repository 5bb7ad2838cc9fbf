/* SPDX-License-Identifier: MIT */
/*
 * extent: the free memory of a part, as maximal runs of 4 KiB pages. Whatever is wholly free is
 * coalesced with its neighbours of the same part at once.
 *
 * A run keeps its own description in the zone's tag table, a word per page, so that giving memory
 * back can't fail and free memory itself is never written: the words of its first and last page hold
 * TAG_FREE | pages, and from 16 pages on the second and third word link it into its bin. Runs below
 * 16 pages are too short for any request and only wait for a neighbour. Bins are two-level (powers
 * of two, sixteen steps each) with bitmaps; the lowest of a few candidates is taken.
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
	size_t mapped_bytes;   /* from the zone, over all time */
	size_t free_bytes;     /* not handed out */
	size_t retained_bytes; /* wholly free units that may be resident */
	size_t sparse_bytes;   /* other free granules that may be resident */
	size_t purged_bytes;   /* given back to the kernel, over all time */
	uint64_t takes;
	uint64_t gives;
	uint64_t steps; /* times the zone grew for this part */
};

/*
 * At boot, after the zone: every part's lock joins the fork walk. Later, the first user of a part
 * could be another library's fork handler, and wait for the walk that it runs in.
 */
void tm_extent_init(void);

/*
 * Take pages of memory, aligned to align_pages (a power of two), lowest address preferred. NULL when
 * no memory can be had. Contents: whatever was there.
 */
void *tm_extent_take(enum tm_part part, size_t pages, size_t align_pages);

/* The same, with every byte zero; pages known to be zero are not written. */
void *tm_extent_take_zero(enum tm_part part, size_t pages, size_t align_pages);

/* The same for a block that has outgrown another: it will be written, see tm_dense_grown. */
void *tm_extent_take_grown(enum tm_part part, size_t pages);

/* Take the pages at start if they are free: how a block grows in place. */
bool tm_extent_take_at(enum tm_part part, void *start, size_t pages);

/*
 * Give pages back, all or a part of what was taken. Calls the kernel only where the program had
 * tainted them (zone.h); what can't be cleansed then is lost.
 */
void tm_extent_give(enum tm_part part, void *start, size_t pages);

/* Whether a free run of the part has room for so many pages. */
bool tm_extent_fits(enum tm_part part, size_t pages);

/* Give wholly free units of one free run to another part, at most so many. False: there are none. */
bool tm_extent_hand_over(enum tm_part from, enum tm_part to, size_t units_max);

/* True: less than this is free and resident, so that the part would grow; no lock, approximate. */
bool tm_extent_lacks(enum tm_part part, size_t bytes);

/* Bytes the part took that were not resident, over all time; no lock, approximate. */
size_t tm_extent_fresh_bytes(enum tm_part part);

/* Bytes handed out by all parts; no lock, approximate. */
size_t tm_extent_used_bytes(void);

void tm_extent_stats(enum tm_part part, struct tm_part_stats *ret_stats);

/* Walks everything of the part; NULL, or the invariant that is broken. Takes the lock. */
const char *tm_extent_check(enum tm_part part);

/* Forget all parts; tests only. */
void tm_extent_clear(void);

#endif
