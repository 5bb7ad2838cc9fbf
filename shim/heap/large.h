/* SPDX-License-Identifier: MIT */
/*
 * large: blocks above 64 KiB, in whole 4 KiB pages, anywhere in their part. A block is described by
 * the granule of its first page. Steady churn takes and gives the same memory without a system
 * call; freed memory goes back to the kernel later (purge.c), never here.
 *
 * Any thread may call; blocks are resized and freed by whoever holds the pointer. Takes the part's
 * lock through extent.c. Does not set errno.
 */
#ifndef TM_HEAP_LARGE_H
#define TM_HEAP_LARGE_H

#include "shim/base/tunables.h"
#include "shim/heap/zone.h"

enum tm_fill {
	TM_FILL_ANY,   /* undefined contents */
	TM_FILL_ZERO,  /* calloc; pages known to be zero are not written */
	TM_FILL_GROWN, /* will get a shorter block's contents; aligned to a page only */
};

/*
 * Allocate a block of at least `bytes` bytes, aligned to `align` (a power of two, or 0); blocks of
 * 64 KiB and less get 64 KiB. tm_large_alloc: of the session tier. NULL past PTRDIFF_MAX, beyond
 * the tier's ceiling, or when no memory can be had after all free memory was given back.
 */
void *tm_large_alloc(size_t bytes, size_t align, enum tm_fill fill);

struct tm_large_request {
	size_t bytes;
	size_t align;
	enum tm_fill fill;
	enum tm_tier tier;
	enum tm_part part; /* a part of blocks: not TM_PART_SPAN, not TM_PART_GROW */
};
void *tm_large_take(const struct tm_large_request *request);

/* Take a block of the same length in pages that was given back last (recent.h). NULL: none. */
void *tm_large_take_again(const struct tm_large_request *request);

/*
 * Free a block. 0; or -EINVAL if p is not, or no longer, the start of a block: nothing is done
 * then.
 */
int tm_large_free(void *p, struct tm_granule *g);

/*
 * Resize a block: in place, by moving its pages, or by copying. NULL: no memory, the old block is
 * kept. A block may keep 64 KiB when it is resized to less.
 */
void *tm_large_resize(void *p, struct tm_granule *g, size_t bytes);

/* Check all blocks, which nobody may change meanwhile: NULL, or the invariant that is broken. */
const char *tm_large_check(void);

/* Where a block lies. `whose`: in TM_PART_GROW its range, else its pool or NULL. */
struct tm_large_home {
	enum tm_tier tier;
	enum tm_part part;
	void *whose;
};

/* [pool.c] Make p a block of `bytes` requested bytes: fill in its granule, the owner last. */
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
