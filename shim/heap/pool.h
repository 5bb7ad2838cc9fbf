/* SPDX-License-Identifier: MIT */
/*
 * pool: fixed pools. A pool holds a given number of slots for blocks of one requested size above
 * 64 KiB. Its memory is taken in whole units where it fills any, advised, and made resident in one
 * go when the first request of that size comes; from then on a request costs a pop and a free a
 * push, no page fault and no system call. Nothing of it ever goes back to the kernel: the purge sees
 * pages in use. When all slots are out, requests take the ordinary path and are counted.
 *
 * A pool of a rule that says keep= and not pool= starts empty: freed blocks of the rule stay in it up
 * to that many bytes. Such slots are ordinary blocks that their part gets back when the pool is full.
 *
 * A slot in use is a block of large.h in every respect; its granule names the pool.
 *
 * Smaller sizes come from spans of slots, so a pool of one is a pool of spans: as many as hold the given
 * number of slots of the size's class. Whoever needs a span of the class gets one of these, of the pool's
 * tier, and wholly free ones come back. Counters are in slots.
 *
 * Any thread may call. One lock per pool (rank POOL), held while the pool is filled; the first requests
 * of one size in many threads wait for each other once. A lock that a raw fork left behind is
 * stolen, and the free slots are found again by their granules: a slot is out exactly if its granule
 * has an owner, which changes under the lock only.
 *
 * Invariants (tm_pool_check): no slot is twice in `slot`; free slots have no owner; those in use and
 * the free ones are all there are.
 */
#ifndef TM_HEAP_POOL_H
#define TM_HEAP_POOL_H

#include "shim/base/hash.h"
#include "shim/heap/large.h"
#include "shim/heap/size_class.h"
#include "shim/os/lock.h"

#define TM_POOLS_MAX 64u
#define TM_POOL_INDEX_BITS 8
#define TM_POOL_CHUNKS 8u

struct tm_pool_chunk {
	uint32_t page;
	uint32_t slots;
};

struct tm_pool {
	struct tm_lock lock;
	uint16_t rule;       /* [const] number of the rule it belongs to; 0: the user's list */
	uint8_t tier;        /* [const] enum tm_tier of its blocks; TM_TIER_ALL: any */
	uint8_t part;        /* [const] enum tm_part */
	uint32_t count;      /* [const] slots to hold; the most it keeps */
	uint32_t slot_pages; /* [const] */
	uint64_t bytes;      /* [const] what is asked for, exactly; up to 64 KiB: or its class */
	uint16_t per_span;   /* [const] slots of a span of a smaller size; else 0 */
	bool fills;          /* [const] ahead; else it keeps what was freed */
	uint8_t chunks;      /* [lock] */
	uint32_t owned;      /* [lock] slots there are */
	uint32_t free;       /* [lock] of these in `slot` */
	uint32_t in_use;     /* [lock] */
	uint32_t high_water; /* [lock] largest in_use */
	uint32_t next_fill;  /* [lock] misses that may pass before filling is tried again */
	uint64_t hits;       /* [lock] */
	uint64_t misses;     /* [lock] of its size, not served though slots may be free */
	uint64_t exhausted;  /* [lock] of its size while all slots were in use */
	uint32_t *slot;      /* [lock] stack of free slots: their pages; lowest on top at first */
	struct tm_pool_chunk chunk[TM_POOL_CHUNKS]; /* [lock] */
};

struct tm_pools {
	_Atomic uint32_t count;                          /* pools below are whole */
	_Atomic uint8_t index[1u << TM_POOL_INDEX_BITS]; /* number + 1, by size and rule */
	uint8_t of_class[TM_CLASSES];                    /* [const after boot] number + 1 */
	uint64_t wished;                                 /* [lock] of it, by pools that fill */
	struct tm_pool pool[TM_POOLS_MAX];
};
extern TM_HIDDEN struct tm_pools tm_pools;

struct tm_pool_wish {
	uint64_t bytes;
	uint64_t count;
	enum tm_tier tier;
	enum tm_part part;
	unsigned rule;
	bool fills;
};

/*
 * 0; -EINVAL: of a rule and not above 64 KiB, or more than there are addresses; -EFBIG: all together more
 * than the machine has memory; -EEXIST; -ENOSPC; -ENOMEM. Those up to 64 KiB at boot only.
 */
int tm_pool_make(const struct tm_pool_wish *wish);

TM_INLINE uint64_t tm_pool_key(uint64_t bytes, unsigned rule)
{
	return bytes | (uint64_t)rule << 48;
}

/* The pool of a size and rule, or NULL. A load and a branch where there are no pools. */
TM_INLINE struct tm_pool *tm_pool_find(size_t bytes, unsigned rule)
{
	if (TM_LIKELY(atomic_load_explicit(&tm_pools.count, memory_order_relaxed) == 0))
		return NULL;
	for (size_t at = tm_hash_slot(tm_pool_key(bytes, rule), TM_POOL_INDEX_BITS);;
	     at = (at + 1) % (1u << TM_POOL_INDEX_BITS)) {
		/* acquire: who sees the number sees the pool */
		unsigned n = atomic_load_explicit(&tm_pools.index[at], memory_order_acquire);

		if (n == 0)
			return NULL;
		if (tm_pools.pool[n - 1].bytes == bytes && tm_pools.pool[n - 1].rule == rule)
			return &tm_pools.pool[n - 1];
	}
}

/* The pool of a class's spans, or NULL. */
TM_INLINE struct tm_pool *tm_pool_of_class(unsigned klass)
{
	if (TM_LIKELY(atomic_load_explicit(&tm_pools.count, memory_order_relaxed) == 0) ||
	    klass >= TM_CLASSES || tm_pools.of_class[klass] == 0)
		return NULL;
	return &tm_pools.pool[tm_pools.of_class[klass] - 1];
}

/* A span's memory, resident and nobody's; NULL: all are out, the ordinary path serves. */
void *tm_pool_take_span(struct tm_pool *pool);

/* Back, when it is wholly free and its granules have no owner. False: it is not of this pool. */
bool tm_pool_give_span(struct tm_pool *pool, void *base);

enum tm_pool_answer {
	TM_POOL_HIT,
	TM_POOL_MISS,
	TM_POOL_EXHAUSTED,
};

/* A block of the pool, published; or NULL, and the ordinary path serves. */
void *tm_pool_take(struct tm_pool *pool, const struct tm_large_request *r,
		   enum tm_pool_answer *ret_answer);

/* A request of the pool's size that it may not serve, since its tier is another. */
void tm_pool_miss(struct tm_pool *pool);

/* An ordinary block becomes one of a keeping pool: its free comes here. */
void tm_pool_adopt(struct tm_pool *pool, void *p);

/* 0, or -EINVAL where p is no block any more. */
int tm_pool_give(void *p, struct tm_granule *g);

/* Free and resident, of all pools of a part; no lock, approximate. */
size_t tm_pool_idle_bytes(enum tm_part part);

struct tm_pool_stats {
	uint64_t slot_bytes, count, owned, hits, misses, exhausted, high_water, in_use;
	enum tm_tier tier;
};

/* False: there is no such pool. No lock, approximate. */
bool tm_pool_stats(unsigned number, struct tm_pool_stats *ret_stats);

/* At boot, with the memory that the machine has: pools that come later need their locks in the fork handlers' walk before anybody forks. */
void tm_pool_init(uint64_t memory_bytes);
void tm_pool_expect_rules(void);

/* NULL, or the invariant that is broken. */
const char *tm_pool_check(void);

/* Tests only. */
void tm_pool_clear(void);

#endif
