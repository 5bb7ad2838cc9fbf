/* SPDX-License-Identifier: MIT */
/*
 * pool: fixed pools. A pool holds a given number of slots for blocks of one requested size above 64
 * KiB. Its memory is taken when the first request of that size comes, in whole units if it fills any,
 * and gets huge pages. The helper, which the request calls, makes it resident piece by piece, and so
 * its slots ready. A request that finds none ready takes one that waits, as it is. Where there is no
 * helper each request makes a small piece resident. Once all is, a request costs a pop and a free a
 * push, without a page fault or a system call. The memory never goes back to the kernel: the purge
 * sees pages in use. When all slots are in use, requests take the ordinary path and are counted.
 *
 * The pool of a rule that says keep= and not pool= starts empty: freed blocks of the rule stay in
 * it up to that many bytes. Such slots are ordinary blocks; when the pool is full, freed ones go
 * back to their part.
 *
 * A slot in use is a block of large.h in every respect; its granule names the pool.
 *
 * Smaller sizes are slots of spans, so a pool of such a size is a pool of spans, as many as hold
 * the given number of slots. Whatever thread needs a span of that class gets one of the pool's, of
 * the pool's tier; wholly free spans come back to it. The counters reported are in slots.
 *
 * Any thread may call. One lock per pool (rank POOL), not held while the helper fills a piece. A lock
 * that a raw fork left behind is stolen, and the free slots are found again by their granules: a slot is in use exactly if its
 * granule has an owner, which changes under the lock only.
 *
 * Invariants (tm_pool_check): no slot is twice in `slot`; free slots have no owner; slots in use
 * and free slots are all there are.
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
	uint32_t ready; /* of these, the lowest ones, which do not wait */
	uint32_t pages; /* resident, from the first page on */
};

struct tm_pool {
	struct tm_lock lock;
	uint16_t rule;  /* [const] number of the rule it belongs to; 0: of TIERMALLOC_POOLS */
	uint8_t tier;   /* [const] enum tm_tier of its blocks; TM_TIER_ALL: any */
	uint8_t part;   /* [const] enum tm_part */
	uint32_t count; /* [const] slots (or spans) to hold; of a keeping pool the most it keeps */
	uint32_t slot_pages; /* [const] */
	uint64_t bytes; /* [const] requested size that it serves; up to 64 KiB: the whole class */
	uint16_t per_span;   /* [const] slots per span, for sizes up to 64 KiB; else 0 */
	bool fills;          /* [const] filled in advance; else it keeps freed blocks */
	uint8_t chunks;      /* [lock] */
	bool by_requests;    /* [lock] no helper came: requests fill */
	uint32_t waiting;    /* [lock] slots of chunks that are not ready */
	uint64_t left;       /* [lock] pages of chunks that are not resident */
	uint32_t owned;      /* [lock] slots that exist and do not wait */
	uint32_t free;       /* [lock] of these, free ones in `slot` */
	uint32_t in_use;     /* [lock] */
	uint32_t high_water; /* [lock] largest in_use */
	uint32_t next_fill;  /* [lock] number of misses at which filling is tried again */
	uint64_t hits;       /* [lock] */
	uint64_t misses;     /* [lock] other requests of its size that were not served */
	uint64_t exhausted;  /* [lock] requests of its size while all slots were in use */
	/* [lock] stack of free slots, by their first page; at first the lowest is on top */
	uint32_t *slot;
	struct tm_pool_chunk chunk[TM_POOL_CHUNKS]; /* [lock] */
};

struct tm_pools {
	_Atomic uint32_t count; /* pools below this are complete */
	/* hash table by size and rule: number + 1 */
	_Atomic uint8_t index[1u << TM_POOL_INDEX_BITS];
	uint8_t of_class[TM_CLASSES]; /* [const after boot] number + 1 */
	uint64_t wished;              /* [lock] bytes of all pools filled in advance */
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
 * Make a pool. 0; -EINVAL: a rule's pool for 64 KiB or less, or more bytes than the zone has
 * addresses for; -EFBIG: all pools together exceed the machine's memory; -EEXIST: the size has a
 * pool; -ENOSPC: TM_POOLS_MAX exist; -ENOMEM. Pools for sizes up to 64 KiB may be made at boot
 * only.
 */
int tm_pool_make(const struct tm_pool_wish *wish);

TM_INLINE uint64_t tm_pool_key(uint64_t bytes, unsigned rule)
{
	return bytes | (uint64_t)rule << 48;
}

/* The pool of a size and rule, or NULL. Costs a load and a branch where there are no pools. */
TM_INLINE struct tm_pool *tm_pool_find(size_t bytes, unsigned rule)
{
	if (TM_LIKELY(atomic_load_explicit(&tm_pools.count, memory_order_relaxed) == 0))
		return NULL;
	for (size_t at = tm_hash_slot(tm_pool_key(bytes, rule), TM_POOL_INDEX_BITS);;
	     at = (at + 1) % (1u << TM_POOL_INDEX_BITS)) {
		/* acquire: whoever sees the number sees the pool */
		unsigned n = atomic_load_explicit(&tm_pools.index[at], memory_order_acquire);

		if (n == 0)
			return NULL;
		if (tm_pools.pool[n - 1].bytes == bytes && tm_pools.pool[n - 1].rule == rule)
			return &tm_pools.pool[n - 1];
	}
}

/* The pool of this class's spans, or NULL. */
TM_INLINE struct tm_pool *tm_pool_of_class(unsigned klass)
{
	if (TM_LIKELY(atomic_load_explicit(&tm_pools.count, memory_order_relaxed) == 0) ||
	    klass >= TM_CLASSES || tm_pools.of_class[klass] == 0)
		return NULL;
	return &tm_pools.pool[tm_pools.of_class[klass] - 1];
}

/*
 * Take the memory of a span, resident and without an owner. NULL: all are in use, take the ordinary
 * path.
 */
void *tm_pool_take_span(struct tm_pool *pool);

/* Give a wholly free span back; its granules have no owner. False: it is not of this pool. */
bool tm_pool_give_span(struct tm_pool *pool, void *base);

enum tm_pool_answer {
	TM_POOL_HIT,
	TM_POOL_MISS,
	TM_POOL_EXHAUSTED,
};

/* Take a block of the pool, published as by tm_large_publish. NULL: take the ordinary path. */
void *tm_pool_take(struct tm_pool *pool, const struct tm_large_request *r,
		   enum tm_pool_answer *ret_answer);

/* Count a request of the pool's size that it may not serve, since its tier differs. */
void tm_pool_miss(struct tm_pool *pool);

/* Make an ordinary block one of a keeping pool, so that its free comes to the pool. */
void tm_pool_adopt(struct tm_pool *pool, void *p);

/* Free a block of a pool. 0, or -EINVAL if p is no longer a block. */
int tm_pool_give(void *p, struct tm_granule *g);

/* Take the pool's lock, and put it in order if a raw fork left it behind. */
void tm_pool_lock(struct tm_pool *pool);

/* Bytes of free and waiting slots of all pools of a part. Takes no lock; approximate. */
size_t tm_pool_idle_bytes(enum tm_part part);

struct tm_pool_stats {
	uint64_t slot_bytes, count, owned, hits, misses, exhausted, high_water, in_use;
	enum tm_tier tier;
};

/* False: there is no such pool. Takes no lock; approximate. */
bool tm_pool_stats(unsigned number, struct tm_pool_stats *ret_stats);

/*
 * At boot. memory_bytes: of the machine; 0: not known. tm_pool_expect_rules registers the locks of
 * pools that rules may make later, before anybody can fork.
 */
void tm_pool_init(uint64_t memory_bytes);
void tm_pool_expect_rules(void);

/* Check all pools: NULL, or the invariant that is broken. */
const char *tm_pool_check(void);

/* Tests only. */
void tm_pool_clear(void);

#endif
