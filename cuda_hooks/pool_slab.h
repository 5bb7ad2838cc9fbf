/* SPDX-License-Identifier: MIT */
/*
 * pool_slab: back end B, large allocations of the driver that are cut into blocks: best fit, neighbours
 * are joined when they are free. Pure; the caller holds the lock and gets slabs from the driver.
 * Device memory is not touched: what is known of it stands in records of ours.
 */
#ifndef TM_CUDA_POOL_SLAB_H
#define TM_CUDA_POOL_SLAB_H

#include "shim/base/attrs.h"
#include "shim/base/list.h"

/* The driver aligns to that, too. */
#define TM_POOL_SLAB_GRAIN 512u
#define TM_POOL_SLAB_BINS 2048u

/*
 * Blocks of three magnitudes have slabs of their own: one of 4 KiB in the middle of a large slab would
 * keep the room on both sides of it apart for as long as it lives, and so would one of 4 MiB for those of
 * hundreds. Those in the middle may lie among the large ones where that saves a slab.
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

/* A piece of a slab; neighbours by address. */
struct tm_chunk {
	struct tm_list_node node; /* of a bin, or of those that wait for the device */
	struct tm_chunk *below, *above;
	struct tm_slab *slab;
	uint64_t at, bytes;
	union {
		uint32_t epoch; /* while it waits */
		uint32_t slot;  /* while it is free: its kind and bin */
	};
	uint32_t state;
};

struct tm_slab {
	struct tm_list_node node;
	uint64_t at, bytes;
	uint64_t live_bytes; /* waiting ones included */
	enum tm_slab_kind kind;
	struct tm_chunk *lowest;
};

struct tm_pool_slab {
	struct tm_list waiting; /* in the order of their epochs */
	uint64_t live_bytes;    /* handed out */
	uint64_t wait_bytes;
	uint64_t empty_bytes; /* of slabs nobody uses */
	uint64_t taken;       /* counter: blocks */
	uint64_t asked;       /* bytes, by the last request */
	struct tm_list slabs;
	uint64_t slab_bytes; /* all slabs */
	uint64_t added;      /* counter: slabs */
	uint64_t has[TM_SLAB_KINDS * TM_POOL_SLAB_BINS / 64];
	struct tm_list bin[TM_SLAB_KINDS * TM_POOL_SLAB_BINS];
};

/* NULL: no room where such blocks lie. */
struct tm_chunk *tm_pool_slab_take(struct tm_pool_slab *pool, uint64_t bytes);
/* The one that was freed last, where it has that very size and its epoch is over; NULL: it is another. */
struct tm_chunk *tm_pool_slab_again(struct tm_pool_slab *pool, uint64_t bytes, uint32_t done);
/* The same, in the slabs of the others: where no more can be had. */
struct tm_chunk *tm_pool_slab_squeeze(struct tm_pool_slab *pool, uint64_t bytes);
void tm_pool_slab_give(struct tm_pool_slab *pool, struct tm_chunk *chunk, uint32_t epoch);

/* Whatever was freed in epochs up to `done` becomes room. True: something did. */
bool tm_pool_slab_settle(struct tm_pool_slab *pool, uint32_t done);

/*
 * The same of the oldest few: frees and requests do it, so that none finds a whole epoch of them to be joined. The
 * one that was freed last stays as it is where the last request had its size: the next one may, too.
 */
bool tm_pool_slab_settle_some(struct tm_pool_slab *pool, uint32_t done);

/* For blocks of that kind. False: no memory for records. */
bool tm_pool_slab_add(struct tm_pool_slab *pool, uint64_t at, uint64_t bytes,
		      enum tm_slab_kind kind);

/* A slab nobody uses leaves the pool, the smallest first. 0: there is none. */
uint64_t tm_pool_slab_remove_empty(struct tm_pool_slab *pool, uint64_t *ret_bytes);

/* The slab that holds an address, or NULL. */
struct tm_slab *tm_pool_slab_around(const struct tm_pool_slab *pool, uint64_t address);

/* All records go; the memory is the caller's. */
void tm_pool_slab_clear(struct tm_pool_slab *pool);

/* 0 or the source line of the invariant that does not hold. */
int tm_pool_slab_check(const struct tm_pool_slab *pool);

#endif
