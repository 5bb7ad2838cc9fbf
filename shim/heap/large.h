/* SPDX-License-Identifier: MIT */
/*
 * large: blocks above 64 KiB, in whole 4 KiB pages, anywhere in their part. What is known about a
 * block stands in the granule of its first page. Steady churn takes and gives the same memory
 * without a system call; freed memory goes back later (purge.c), never here.
 *
 * Any thread may call; blocks are found, resized and freed by whoever holds the pointer. Takes the
 * part's lock through extent.c. Does not set errno.
 */
#ifndef TM_HEAP_LARGE_H
#define TM_HEAP_LARGE_H

#include "shim/base/tunables.h"
#include "shim/heap/zone.h"

enum tm_fill {
	TM_FILL_ANY,   /* whatever was there */
	TM_FILL_ZERO,  /* calloc; pages known to be zero are not written */
	TM_FILL_GROWN, /* by a shorter block's content; not aligned beyond a page */
};

/*
 * A block of at least bytes, aligned to align (a power of two, or 0). Blocks of 64 KiB and less get
 * 64 KiB. NULL past PTRDIFF_MAX, beyond the tier's ceiling, or when no memory can be had after giving
 * all free memory back.
 */
void *tm_large_alloc(size_t bytes, size_t align, enum tm_fill fill); /* of the session tier */

struct tm_large_request {
	size_t bytes;
	size_t align;
	enum tm_fill fill;
	enum tm_tier tier;
	enum tm_part part; /* of blocks: not TM_PART_SPAN, not TM_PART_GROW */
};
void *tm_large_take(const struct tm_large_request *request);

/* 0, or -EINVAL when p is not the start of a block, or no longer: nothing is done then. */
int tm_large_free(void *p, struct tm_granule *g);

/*
 * Resize: in place, moved or copied. NULL: no memory, the old block is kept. May leave a block
 * of bytes below 64 KiB in 64 KiB.
 */
void *tm_large_resize(void *p, struct tm_granule *g, size_t bytes);

/* Walks all blocks, which nobody may change meanwhile; NULL, or the invariant that is broken. */
const char *tm_large_check(void);

/* Where a block lies; of TM_PART_GROW its range, else the pool whose slot it is, or NULL. */
struct tm_large_home {
	enum tm_tier tier;
	enum tm_part part;
	void *whose;
};

/* For pool.c: p is a block from now on. */
void tm_large_publish(void *p, size_t bytes, struct tm_large_home home);

TM_INLINE struct tm_pool *tm_large_pool(const struct tm_granule *g)
{
	return g->large.part == TM_PART_GROW ? NULL : g->large.pool;
}

TM_INLINE size_t tm_large_usable(const struct tm_granule *g)
{
	return (size_t)g->large.pages << TM_PAGE_SHIFT;
}

TM_INLINE bool tm_large_starts_at(const void *p, const struct tm_granule *g)
{
	return tm_granule_owner(g) == TM_OWNER_LARGE &&
	       (uintptr_t)p == tm_zone.base + ((uintptr_t)g->large.page << TM_PAGE_SHIFT);
}

#endif
