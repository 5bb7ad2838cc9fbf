/* SPDX-License-Identifier: MIT */
/*
 * sites: what is known about call sites. A record of 64 bytes for each return address (coarse), and,
 * where blocks of one return address live differently, for return address + stack height (fine) and
 * then + size class (sized). Records stand one behind the other, numbered from 1, so that they fill their
 * pages; an open-addressing table that only grows holds their numbers by key; inserts are lock-free. A
 * cache of 2 ways per thread leads from a request to its record.
 *
 * Memory is lent: TM_SITES_BYTES of zeros for the table (touched page by page as sites appear),
 * sizeof(struct tm_sites_cache) of zeros for each thread. Any thread may call; a cache only its owner.
 * Invariant: a record's key never changes while records of the same generation are in use.
 */
#ifndef TM_POLICIES_SITES_H
#define TM_POLICIES_SITES_H

#include <stdatomic.h>

#include "shim/base/attrs.h"
#include "shim/base/hash.h"

#define TM_SITES_BITS 16u
#define TM_SITES_COUNT (1u << TM_SITES_BITS)
#define TM_SITES_LIMIT (TM_SITES_COUNT / 4 * 3) /* then no new ones: index 0, defaults */
#define TM_SITES_CACHE_SETS 512u

/* How a record's blocks are told apart. */
enum tm_site_level { TM_SITE_COARSE, TM_SITE_FINE, TM_SITE_SIZED, TM_SITE_LEVELS };

/* Ask the finer record. */
#define TM_SITE_MIXED 0x100u

struct tm_site_record {
	_Atomic uint64_t key;     /* 0: not written yet; written last */
	uintptr_t return_address; /* [const] as all that says so, once there is a key */
	uint32_t height;          /* [const] of the stack, in 16 bytes; 0 in a coarse record */
	uint16_t parent;          /* [const] index of the coarser record, 0: none */
	uint8_t level;            /* [const] enum tm_site_level */
	_Atomic uint8_t steady;   /* 1: frees that are no surprise need not all be counted */
	_Atomic uint16_t belief;  /* enum tm_tier, TM_TIER_ALL: nothing; or'ed with TM_SITE_MIXED */
	_Atomic uint8_t rules;    /* route.c: whether any rule's place is right */
	_Atomic uint8_t loaded;   /* 1: blocks of a model's size came from here while loading */
	_Atomic uint32_t rules_generation;
	_Atomic uint32_t shorts, longs; /* frees, by age */
	_Atomic uint32_t born;          /* births; threads hand them over late */
	_Atomic uint32_t first_time;    /* of the first birth */
	_Atomic uint16_t rule;          /* that decided last; 0: none */
	uint16_t slot;          /* [reporter] its number in the report + 1; 0: not reported yet */
	_Atomic uint16_t ruled; /* the last rule that decided anything here; 0: none ever */
	uint8_t size_log2;      /* [const] sized records: of their blocks */
	uint8_t unused[6];
};
_Static_assert(sizeof(struct tm_site_record) == TM_CACHE_LINE, "one line");

#define TM_SITES_BYTES ((sizeof(struct tm_site_record) + sizeof(uint16_t)) * TM_SITES_COUNT)

/* Key of a record that was withdrawn: its place stays, so that chains of probes stay whole. */
#define TM_SITES_WITHDRAWN UINT64_C(1)

/* The lent table. */
struct tm_sites {
	struct tm_site_record *record;
	_Atomic uint16_t *place; /* numbers of records, by hash of the key; 0: free */
	_Atomic uint32_t used;
	_Atomic uint32_t generation; /* raised when records were withdrawn */
	_Atomic uint32_t beliefs;    /* raised when what a record believes changed */
};

/* Births are handed over to the record one by one at first, later `batch` at once. */
struct tm_sites_way {
	uint64_t key;
	uint16_t index;
	uint16_t left;    /* births until then */
	uint16_t batch;   /* 0: the way is empty */
	uint16_t settled; /* the finished decision: route.h; 0: none */
};

/* [owner] 16 KiB + a line. */
struct tm_sites_cache {
	struct tm_sites_way way[TM_SITES_CACHE_SETS][2];
	uint32_t generation;
};

void tm_sites_init(struct tm_sites *sites, void *memory);

/*
 * Keys by level; never 0. Large blocks of a return address are a site of their own: behind one wrapper
 * stand the weights and the messages.
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

/* Set of the cache that a key belongs to; return addresses and heights are not spread evenly. */
TM_INLINE size_t tm_sites_set(uint64_t key)
{
	return (size_t)(key * TM_HASH_GOLDEN >> 55);
}
_Static_assert(TM_SITES_CACHE_SETS == 1u << (64 - 55), "tm_sites_set");

/* Index of the record of a key; 0: none. */
uint16_t tm_sites_find(const struct tm_sites *sites, uint64_t key);

struct tm_site_birth {
	uint64_t key;
	uintptr_t return_address;
	uint32_t height;
	uint16_t parent;
	uint8_t level;
	uint8_t size_log2;
};

/* Index of the record of a key, made where there is none; 0: the table is full. */
uint16_t tm_sites_enter(struct tm_sites *sites, const struct tm_site_birth *birth);

/* Numbers of records are below this; some below may not be written yet. */
uint32_t tm_sites_end(const struct tm_sites *sites);

TM_INLINE bool tm_sites_is_live(const struct tm_site_record *r)
{
	return atomic_load_explicit(&r->key, memory_order_acquire) > TM_SITES_WITHDRAWN;
}

/* After dlclose: records of return addresses in [begin, end) are withdrawn, caches start anew. */
void tm_sites_forget(struct tm_sites *sites, uintptr_t begin, uintptr_t end);

#endif
