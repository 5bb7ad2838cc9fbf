/* SPDX-License-Identifier: MIT */
/*
 * pool_cache: back end A. Keeps freed whole allocations of the driver for requests of exactly the
 * same size, so that everything the driver reports about such a block stays exact. Pure; the caller
 * holds the lock, owns the records and calls the driver.
 */
#ifndef TM_CUDA_POOL_CACHE_H
#define TM_CUDA_POOL_CACHE_H

#include "shim/base/attrs.h"
#include "shim/base/list.h"

#define TM_POOL_CACHE_BINS 128u

struct tm_pool_whole {
	struct tm_list_node lru;
	struct tm_pool_whole *next; /* next in the same bin */
	uint64_t at;
	uint64_t bytes;
	/* flags of pinned host memory; only blocks of equal kind are interchangeable */
	uint32_t kind;
	uint32_t epoch; /* stamp of its free, see context.h */
};

struct tm_pool_cache {
	struct tm_list lru; /* oldest first */
	uint64_t idle_bytes;
	uint64_t idle_blocks;
	struct tm_pool_whole *bin[TM_POOL_CACHE_BINS];
};

/*
 * Takes a block of this size (or up to `slack` bytes larger) and kind whose epoch is at most
 * `done`; NULL: none. *ret_waiting, if not NULL, is set if one fits but the device may still be
 * using it.
 */
struct tm_pool_whole *tm_pool_cache_take(struct tm_pool_cache *cache, uint64_t bytes,
					 uint64_t slack, uint32_t kind, uint32_t done,
					 bool *ret_waiting);
/* Adds a freed block; its epoch is the stamp of its free. */
void tm_pool_cache_give(struct tm_pool_cache *cache, struct tm_pool_whole *whole);

/* Removes the block that has been idle longest; NULL: the pool is empty. */
struct tm_pool_whole *tm_pool_cache_evict(struct tm_pool_cache *cache);

/* Whether an idle block begins at that address. Walks the list. */
bool tm_pool_cache_holds(const struct tm_pool_cache *cache, uint64_t at);

/* Returns 0, or the source line of the invariant that is broken. */
int tm_pool_cache_check(const struct tm_pool_cache *cache);

#endif
