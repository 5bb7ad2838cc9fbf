/* SPDX-License-Identifier: MIT */
/*
 * pool_vmm: back end C, chunks of physical memory of two sizes, mapped side by side into addresses made for
 * one block. Long blocks are made of large chunks, with small ones at the end so that nothing is wasted: a
 * quarter of the driver's calls. What is in stock is used before anything is made, whichever size it has; a
 * large chunk that nobody can use makes room for small ones. A freed block keeps its mapping for the next of its length; for another length it is taken
 * apart: its chunks are mapped elsewhere, its addresses go back to the driver and are never mapped
 * again by us, because a network card may have learned what lay there.
 *
 * The driver is called through a table, so that tests can stand in for it; under the caller's lock.
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
	int (*grant)(void *context, uint64_t at, uint64_t bytes); /* access for everybody who may */
};

struct tm_range {
	struct tm_list_node node; /* idle: oldest first; else the live ones */
	struct tm_list_node same; /* idle ones of like length */
	uint64_t at;
	uint32_t chunks; /* its length, in small ones */
	uint32_t large;  /* so many handles of large ones come first */
	uint32_t epoch;
	bool live;
	uint64_t handle[];
};

#define TM_POOL_VMM_LARGE 4u /* small chunks in a large one */
#define TM_POOL_VMM_BINS 256u

/* Chunks that are mapped nowhere. */
struct tm_pool_vmm_stock {
	uint64_t *handle;
	uint32_t count, room;
};

struct tm_pool_vmm {
	const struct tm_pool_vmm_ops *ops;
	void *context;        /* for ops */
	uint64_t chunk_bytes; /* small ones; a power of two */
	uint32_t large_least; /* blocks of so many small chunks get large ones; 0: none does */
	struct tm_list idle, live;
	uint64_t idle_chunks; /* mapped in idle ranges */
	uint64_t live_chunks;
	uint64_t asked;   /* chunks, by the last request */
	uint64_t created; /* counters */
	uint64_t hits, stitched;
	struct tm_pool_vmm_stock small, large;
	struct tm_list bin[TM_POOL_VMM_BINS]; /* idle ones by their length, oldest first */
};

/* A range of that length that is mapped and whose epoch is over; NULL: none is. It is live. */
struct tm_range *tm_pool_vmm_again(struct tm_pool_vmm *pool, uint64_t bytes, uint32_t done);

/* 0, or what the driver said of the last thing that could not be had. ret_range is live. */
int tm_pool_vmm_take(struct tm_pool_vmm *pool, uint64_t bytes, uint32_t done,
		     struct tm_range **ret_range);
void tm_pool_vmm_give(struct tm_pool_vmm *pool, struct tm_range *range, uint32_t epoch);

/* Gives chunks back until at most that much is idle. Bytes given back. */
uint64_t tm_pool_vmm_trim(struct tm_pool_vmm *pool, uint64_t keep_bytes, uint32_t done);

uint64_t tm_pool_vmm_idle_bytes(const struct tm_pool_vmm *pool);
uint64_t tm_pool_vmm_live_bytes(const struct tm_pool_vmm *pool);

/* Access was granted to another device, or taken away: all mappings are brought up to date. */
void tm_pool_vmm_grant_all(struct tm_pool_vmm *pool);

/* Whether an address lies in an idle range. Walks. */
bool tm_pool_vmm_holds(const struct tm_pool_vmm *pool, uint64_t address);

/* Everything goes back, live ranges too. */
void tm_pool_vmm_clear(struct tm_pool_vmm *pool);

int tm_pool_vmm_check(const struct tm_pool_vmm *pool);

#endif
