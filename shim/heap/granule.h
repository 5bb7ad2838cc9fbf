/* SPDX-License-Identifier: MIT */
/*
 * granule: the page map, one 64-byte entry for each 64 KiB of the zone, in a flat array indexed by
 * (address - zone base) >> 16: a free costs one compare, one shift, one load.
 *
 * Owns nothing; zone.c maps the array. The front part is common to all kinds; the union belongs to
 * spans (span.c) or to the head granule of a large block (large.c, grow.c). Large blocks are at
 * least 64 KiB long, so a granule holds at most one block start.
 *
 * Invariant: entries of memory that nobody owns have owner == TM_OWNER_NONE; so have the entries of
 * a large block past its head. Checker: tm_large_check.
 */
#ifndef TM_HEAP_GRANULE_H
#define TM_HEAP_GRANULE_H

#include "shim/base/attrs.h"

/*
 * Values of owner that are not a heap. Heaps are 8 KiB aligned and put their own bits into the low
 * 13.
 */
#define TM_OWNER_NONE ((uintptr_t)0)
#define TM_OWNER_LARGE ((uintptr_t)2)
/*
 * Bits beside a heap's address. MEDIUM: a span of medium slots. SOLO: the same where a slot fills
 * its granule, once that slot was handed out; but not the span's first granule, since the free of a
 * slot 0 takes the slower path. ARENA: a block of the heap's arena. TAINTED: the program changed
 * some pages of the span (madvise, mlock, mprotect).
 */
#define TM_OWNER_MEDIUM ((uintptr_t)1)
#define TM_OWNER_SOLO ((uintptr_t)3)
#define TM_OWNER_ARENA ((uintptr_t)2)
#define TM_OWNER_TAINTED ((uintptr_t)4)
#define TM_OWNER_BITS ((uintptr_t)7)

struct tm_range;
struct tm_pool;

struct tm_granule {
	uintptr_t owner; /* [atomic] the heap that slots here are freed into, with bits as above */
	uint32_t recip;
	uint16_t first; /* index of the first slot that was carved; never 0, see tcache_inline.h */
	uint8_t kind : 4; /* enum tm_span_kind */
	uint8_t tier : 4; /* enum tm_tier of everything in the granule, one load from the pointer */
	uint8_t klass;
	uint8_t *side;
	union {
		struct {               /* [span.c] */
			uint32_t head; /* granule index of the span's first granule */
			uint16_t nslots;
			uint16_t carved;
			uint16_t granules;
			uint16_t mark;
			uint32_t next;
			uint32_t prev;
			uint16_t index; /* of this granule in its span */
			/* bytes that a slot takes of a magazine's room, see remote.h */
			uint16_t charge;
			void *parked;
			void *looked;
		};
		struct {                    /* [large.c], written by the owner of the block */
			uint32_t page;      /* page number of the block's start in the zone */
			uint16_t site;      /* of policies/route.h; and the epoch of birth: */
			uint8_t epoch;      /* both free for the caller of large.h */
			uint8_t part;       /* enum tm_part */
			uint64_t pages;     /* bytes of the block >> 12 */
			uint64_t requested; /* bytes asked for */
			uint64_t account;   /* [account.c] side entry of the block */
			union {
				/* [grow.c] for TM_PART_GROW: its range */
				struct tm_range *range;
				/* [pool.c] else: the pool it is a slot of, or NULL */
				struct tm_pool *pool;
			};
		} large;
	};
};

_Static_assert(sizeof(struct tm_granule) == TM_CACHE_LINE, "a granule is one cache line");

TM_INLINE uintptr_t tm_granule_owner(const struct tm_granule *g)
{
	return __atomic_load_n(&g->owner, __ATOMIC_RELAXED);
}

#endif
