/* SPDX-License-Identifier: MIT */
/*
 * sites: the table of call sites and what is known about each. There is a 64-byte record per return
 * address (coarse); if its blocks differ in lifetime, also one per return address and stack depth
 * (fine), and then one per size class of that (sized). Records are numbered from 1 and stored
 * contiguously, so that they fill their pages. An open-addressing hash table, which only grows,
 * maps keys to record numbers; inserts are lock-free. Each thread has a 2-way set-associative cache
 * from keys to records.
 *
 * Memory is lent: TM_SITES_BYTES of zeros for the table (its pages are touched as sites appear) and
 * sizeof(struct tm_sites_cache) of zeros per thread. Any thread may call; a cache is used by its
 * owner only. Invariant: a record's key never changes while records of the same generation are in
 * use.
 */
#ifndef TM_POLICIES_SITES_H
#define TM_POLICIES_SITES_H

#include <stdatomic.h>

#include "shim/base/attrs.h"
#include "shim/base/hash.h"

#define TM_SITES_BITS 16u
#define TM_SITES_COUNT (1u << TM_SITES_BITS)
/* from here on no new records: index 0, default decisions */
#define TM_SITES_LIMIT (TM_SITES_COUNT / 4 * 3)
#define TM_SITES_CACHE_SETS 512u

/* What a record's key consists of: see the head comment. */
enum tm_site_level { TM_SITE_COARSE, TM_SITE_FINE, TM_SITE_SIZED, TM_SITE_LEVELS };

/* Flag in `belief`: lifetimes are mixed, use a finer record. */
#define TM_SITE_MIXED 0x100u

struct tm_site_record {
	_Atomic uint64_t key;     /* 0: record not complete yet; written last */
	uintptr_t return_address; /* [const] once `key` is set, as all fields marked so */
	uint32_t height;          /* [const] stack depth, in 16 bytes; 0 in a coarse record */
	uint16_t parent;          /* [const] index of the coarser record, 0: none */
	uint8_t level;            /* [const] enum tm_site_level */
	_Atomic uint8_t steady;   /* 1: frees that confirm the belief are sampled, 1 in 16 */
	_Atomic uint16_t belief;  /* enum tm_tier, TM_TIER_ALL: none; may have TM_SITE_MIXED set */
	_Atomic uint8_t rules;    /* RULES_* of route.c: whether the place of any rule matches */
	_Atomic uint8_t loaded;   /* 1: while loading, a block of a model's size came from here */
	_Atomic uint32_t rules_generation;
	_Atomic uint32_t shorts, longs; /* frees of young and of older blocks (TM_LIFETIME_SHORT) */
	_Atomic uint32_t born;          /* births; threads hand them over in batches */
	_Atomic uint32_t first_time;    /* of the first birth, in half seconds */
	_Atomic uint16_t rule;          /* rule that decided last; 0: none */
	uint16_t slot;                  /* [reporter] slot in the report + 1; 0: not reported yet */
	_Atomic uint16_t ruled;         /* last rule that ever decided here; 0: none */
	uint8_t size_log2;              /* [const] in sized records: log2 of the block size */
	uint8_t unused[6];
};
_Static_assert(sizeof(struct tm_site_record) == TM_CACHE_LINE, "one line");

#define TM_SITES_BYTES ((sizeof(struct tm_site_record) + sizeof(uint16_t)) * TM_SITES_COUNT)

/* Key of a withdrawn record. Its slot stays occupied, so that probe chains stay intact. */
#define TM_SITES_WITHDRAWN UINT64_C(1)

/* The table; its memory is lent. */
struct tm_sites {
	struct tm_site_record *record;
	_Atomic uint16_t *place; /* record numbers, by hash of the key; 0: free */
	_Atomic uint32_t used;
	_Atomic uint32_t generation; /* incremented when records are withdrawn */
	_Atomic uint32_t beliefs;    /* incremented when any record's belief changes */
};

/*
 * One entry of a thread's cache. Births are handed to the record one by one at first, later `batch`
 * at a time.
 */
struct tm_sites_way {
	uint64_t key;
	uint16_t index;
	uint16_t left;    /* births until the next hand-over */
	uint16_t batch;   /* 0: the way is empty */
	uint16_t settled; /* cached decision, see route.h; 0: none */
};

/* [owner] 16 KiB and a cache line. */
struct tm_sites_cache {
	struct tm_sites_way way[TM_SITES_CACHE_SETS][2];
	uint32_t generation;
};

/* Sets up the table in TM_SITES_BYTES of lent zeros. */
void tm_sites_init(struct tm_sites *sites, void *memory);

/*
 * Keys of each level; never 0. Large blocks of a return address are a site of their own, because
 * one wrapper may allocate both the weights and short messages.
 */
TM_INLINE uint64_t tm_sites_key_coarse(uintptr_t return_address, bool large)
{
	return (return_address & UINT64_MAX >> 3) | (uint64_t)large << 61;
}

TM_INLINE uint64_t tm_sites_key_fine(uintptr_t return_address, uint32_t height, bool large)
{
	return ((return_address + (uint64_t)height * UINT64_C(0x61c8864680b583eb)) &
		UINT64_MAX >> 3) |
	       (uint64_t)large << 61 | UINT64_C(1) << 62;
}

TM_INLINE bool tm_sites_key_is_large(uint64_t key)
{
	return key >> 61 & 1;
}

TM_INLINE uint64_t tm_sites_key_sized(uint64_t fine, unsigned size_class)
{
	return ((fine + (uint64_t)(size_class + 1) * TM_HASH_GOLDEN) & UINT64_MAX >> 3) |
	       (fine & UINT64_C(1) << 61) | UINT64_C(3) << 62;
}

/*
 * Cache set of a key. The multiplication spreads return addresses and depths, which are unevenly
 * distributed.
 */
TM_INLINE size_t tm_sites_set(uint64_t key)
{
	return (size_t)(key * TM_HASH_GOLDEN >> 55);
}
_Static_assert(TM_SITES_CACHE_SETS == 1u << (64 - 55), "tm_sites_set");

/* Index of a key's record; 0: there is none. */
uint16_t tm_sites_find(const struct tm_sites *sites, uint64_t key);

struct tm_site_birth {
	uint64_t key;
	uintptr_t return_address;
	uint32_t height;
	uint16_t parent;
	uint8_t level;
	uint8_t size_log2;
};

/* Index of a key's record, which is created if missing; 0: the table is full. */
uint16_t tm_sites_enter(struct tm_sites *sites, const struct tm_site_birth *birth);

/* Upper bound of record numbers; some records below it may not be complete yet. */
uint32_t tm_sites_end(const struct tm_sites *sites);

/* Whether a record is complete and not withdrawn. */
TM_INLINE bool tm_sites_is_live(const struct tm_site_record *r)
{
	return atomic_load_explicit(&r->key, memory_order_acquire) > TM_SITES_WITHDRAWN;
}

/*
 * To be called after dlclose: withdraws all records with return addresses in [begin, end) and
 * starts a new generation, which empties the caches.
 */
void tm_sites_forget(struct tm_sites *sites, uintptr_t begin, uintptr_t end);

#endif
