/* SPDX-License-Identifier: MIT */
/*
 * pool_vmm: back end C. Maps chunks of physical memory, of two sizes, side by side into an address
 * range made for one block. Long blocks consist of large chunks with small ones at the end, so that
 * nothing is wasted; that takes a quarter of the driver calls. Chunks in stock are used before new
 * ones are made, whichever size they have; a large chunk that nobody can use is released to make
 * room for small ones. A freed block keeps its mapping for the next request of its length. For
 * another length it is taken apart: its chunks are mapped elsewhere, and its addresses go back to
 * the driver and are never mapped again by us, because a network card may have registered them.
 *
 * The driver is called through a table, which tests replace; callers hold the lock.
 */
#ifndef TM_CUDA_POOL_VMM_H
#define TM_CUDA_POOL_VMM_H

#include "shim/base/attrs.h"
#include "shim/base/list.h"

/* Each returns 0 or the driver's error. */
struct tm_pool_vmm_ops {
	int (*create)(void *context, uint64_t bytes, uint64_t *ret_handle);
	int (*release)(void *context, uint64_t bytes, uint64_t handle);
	int (*reserve)(void *context, uint64_t bytes, uint64_t *ret_at);
	int (*unreserve)(void *context, uint64_t at, uint64_t bytes);
	int (*map)(void *context, uint64_t at, uint64_t bytes, uint64_t handle);
	int (*unmap)(void *context, uint64_t at, uint64_t bytes);
	/* gives access to all devices that may have it */
	int (*grant)(void *context, uint64_t at, uint64_t bytes);
};

struct tm_range {
	struct tm_list_node node; /* idle list, oldest first, or list of live ranges */
	struct tm_list_node same; /* idle ranges of similar length */
	uint64_t at;
	uint32_t chunks; /* length, in small chunks */
	uint32_t large;  /* number of large chunks; their handles come first */
	uint32_t epoch;
	bool live;
	uint64_t handle[];
};

#define TM_POOL_VMM_LARGE 4u /* small chunks per large one */
#define TM_POOL_VMM_BINS 256u

/* Chunks that are not mapped anywhere. */
struct tm_pool_vmm_stock {
	uint64_t *handle;
	uint32_t count, room;
};

struct tm_pool_vmm {
	const struct tm_pool_vmm_ops *ops;
	void *context;        /* passed to ops */
	uint64_t chunk_bytes; /* of a small chunk; a power of two */
	uint32_t large_least; /* blocks from this many small chunks on get large ones; 0: never */
	struct tm_list idle, live;
	uint64_t idle_chunks; /* chunks mapped in idle ranges */
	uint64_t live_chunks;
	uint64_t asked;   /* length of the last request, in chunks */
	uint64_t created; /* counters */
	uint64_t hits, stitched;
	struct tm_pool_vmm_stock small, large;
	struct tm_list bin[TM_POOL_VMM_BINS]; /* idle ranges by length, oldest first */
};

/*
 * Takes an idle range of exactly that length whose epoch is over, and makes it live; NULL: there is
 * none.
 */
struct tm_range *tm_pool_vmm_again(struct tm_pool_vmm *pool, uint64_t bytes, uint32_t done);

/*
 * Makes a live range, from idle ones or new chunks. Returns 0 or the driver's error for what it
 * lacked last.
 */
int tm_pool_vmm_take(struct tm_pool_vmm *pool, uint64_t bytes, uint32_t done,
		     struct tm_range **ret_range);
/* Makes a live range idle; it can be reused once `epoch` is over. */
void tm_pool_vmm_give(struct tm_pool_vmm *pool, struct tm_range *range, uint32_t epoch);

/* Releases chunks until at most `keep_bytes` are idle. Returns the bytes released. */
uint64_t tm_pool_vmm_trim(struct tm_pool_vmm *pool, uint64_t keep_bytes, uint32_t done);

uint64_t tm_pool_vmm_idle_bytes(const struct tm_pool_vmm *pool);
uint64_t tm_pool_vmm_live_bytes(const struct tm_pool_vmm *pool);

/* Applies the current access rights to all mappings, after they changed. */
void tm_pool_vmm_grant_all(struct tm_pool_vmm *pool);

/* Whether an address lies in an idle range. Walks the list. */
bool tm_pool_vmm_holds(const struct tm_pool_vmm *pool, uint64_t address);

/* Releases everything, live ranges as well. */
void tm_pool_vmm_clear(struct tm_pool_vmm *pool);

/* Returns 0, or the source line of the invariant that is broken. */
int tm_pool_vmm_check(const struct tm_pool_vmm *pool);

#endif
