/* SPDX-License-Identifier: MIT */
/*
 * pool_slab: back end B. Cuts large allocations of the driver (slabs) into blocks: best fit, and
 * free neighbours are joined. Pure; the caller holds the lock and gets slabs from the driver.
 * Device memory is not touched: all metadata is in host records.
 */
#ifndef TM_CUDA_POOL_SLAB_H
#define TM_CUDA_POOL_SLAB_H

#include "shim/base/attrs.h"
#include "shim/base/list.h"

/* Alignment and granularity of blocks, in bytes; the driver's alignment, too. */
#define TM_POOL_SLAB_GRAIN 512u
#define TM_POOL_SLAB_BINS 2048u

/*
 * Blocks of three magnitudes have separate slabs: a 4 KiB block in the middle of a large slab would
 * split its free space for as long as it lives, and so would a 4 MiB block among blocks of hundreds
 * of MiB. Middle blocks may use large slabs where that saves a slab.
 */
#define TM_POOL_SLAB_SMALL_MOST (UINT64_C(1) << 20)
#define TM_POOL_SLAB_SMALL_BYTES (UINT64_C(16) << 20)
#define TM_POOL_SLAB_LARGE_LEAST (UINT64_C(128) << 20)

enum tm_slab_kind { TM_SLAB_MIDDLE, TM_SLAB_SMALL, TM_SLAB_LARGE, TM_SLAB_KINDS };

TM_INLINE enum tm_slab_kind tm_pool_slab_kind(uint64_t bytes)
{
	return bytes < TM_POOL_SLAB_SMALL_MOST    ? TM_SLAB_SMALL
	       : bytes < TM_POOL_SLAB_LARGE_LEAST ? TM_SLAB_MIDDLE
						  : TM_SLAB_LARGE;
}

enum tm_chunk_state { TM_CHUNK_FREE, TM_CHUNK_LIVE, TM_CHUNK_WAITING };

struct tm_slab;

/* A chunk of a slab; linked to its neighbours by address. */
struct tm_chunk {
	/* in a bin's list, or in the list of chunks that wait for the device */
	struct tm_list_node node;
	struct tm_chunk *below, *above;
	struct tm_slab *slab;
	uint64_t at, bytes;
	union {
		uint32_t epoch; /* while waiting: stamp of its free */
		uint32_t slot;  /* while free: its kind and bin */
	};
	uint32_t state;
};

struct tm_slab {
	struct tm_list_node node;
	uint64_t at, bytes;
	uint64_t live_bytes; /* live and waiting chunks */
	enum tm_slab_kind kind;
	struct tm_chunk *lowest;
};

struct tm_pool_slab {
	struct tm_list waiting; /* in the order of their frees */
	uint64_t live_bytes;    /* handed out */
	uint64_t wait_bytes;
	uint64_t empty_bytes; /* of slabs without live or waiting chunks */
	uint64_t taken;       /* counter: blocks handed out */
	uint64_t asked;       /* size of the last request, in bytes */
	struct tm_list slabs;
	uint64_t slab_bytes; /* all slabs */
	uint64_t added;      /* counter: slabs added */
	uint64_t has[TM_SLAB_KINDS * TM_POOL_SLAB_BINS / 64];
	struct tm_list bin[TM_SLAB_KINDS * TM_POOL_SLAB_BINS];
};

/* Takes a block; NULL: no free chunk is large enough in slabs that such blocks may use. */
struct tm_chunk *tm_pool_slab_take(struct tm_pool_slab *pool, uint64_t bytes);
/*
 * Takes the chunk that was freed last, if it has this very size and its epoch is over; else NULL.
 */
struct tm_chunk *tm_pool_slab_again(struct tm_pool_slab *pool, uint64_t bytes, uint32_t done);
/* Takes a block from slabs of any kind; for when no new slab can be had. */
struct tm_chunk *tm_pool_slab_squeeze(struct tm_pool_slab *pool, uint64_t bytes);
/* Frees a chunk, which waits until `epoch` is over. */
void tm_pool_slab_give(struct tm_pool_slab *pool, struct tm_chunk *chunk, uint32_t epoch);

/* Makes all chunks free that were freed in epochs up to `done`. True: there were any. */
bool tm_pool_slab_settle(struct tm_pool_slab *pool, uint32_t done);

/*
 * The same for the oldest few only. Frees and requests call it, so that none of them has to join a
 * whole epoch of chunks. The chunk that was freed last stays as it is if it has the last request's
 * size: the next request may have that size, too.
 */
bool tm_pool_slab_settle_some(struct tm_pool_slab *pool, uint32_t done);

/* Adds a slab for blocks of that kind. False: no memory for records. */
bool tm_pool_slab_add(struct tm_pool_slab *pool, uint64_t at, uint64_t bytes,
		      enum tm_slab_kind kind);

/* Removes the smallest empty slab and returns its address; 0: there is none. */
uint64_t tm_pool_slab_remove_empty(struct tm_pool_slab *pool, uint64_t *ret_bytes);

/* The slab that contains an address, or NULL. */
struct tm_slab *tm_pool_slab_around(const struct tm_pool_slab *pool, uint64_t address);

/* Drops all records; the caller frees the slabs. */
void tm_pool_slab_clear(struct tm_pool_slab *pool);

/* Returns 0, or the source line of the invariant that is broken. */
int tm_pool_slab_check(const struct tm_pool_slab *pool);

#endif
