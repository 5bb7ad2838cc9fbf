/* SPDX-License-Identifier: MIT */
/*
 * Inside of a cache: its buffers and the pool of idle ones; for kv*.c and the forward pass.
 */
#ifndef YI_KV_BUFFERS_H
#define YI_KV_BUFFERS_H

#include <stdatomic.h>

#include "tools/runner/kv.h"

/* One block per layer for keys, then one per layer for values. */
struct yi_kv_buffers {
	_Atomic uint32_t users; /* more than one: shared, its rows don't change any more */
	uint32_t rows;          /* each block has room for that many */
	uint32_t n_blocks;
	size_t row_bytes;
	struct yi_kv_pool *pool;    /* [const] */
	struct yi_kv_buffers *next; /* in the pool, by rows */
	uint8_t *blocks[];
};

/* Takes idle buffers of at least `rows` from the pool, or makes them.  NULL: no memory. */
struct yi_kv_buffers *yi_kv_buffers_take(const struct yi_kv_config *config, uint32_t rows);
/* Room for `rows`, by realloc.  -ENOMEM: as before. */
int yi_kv_buffers_grow(struct yi_kv_buffers *buffers, uint32_t rows);
/* Drops one user. */
void yi_kv_buffers_drop(struct yi_kv_buffers *buffers);
uint64_t yi_kv_buffers_bytes(const struct yi_kv_buffers *buffers);

/* Positions start .. start + tokens - 1 lie in rows 0 .. tokens - 1 of the buffers. */
struct yi_kv_part {
	struct yi_kv_buffers *buffers;
	uint32_t start, tokens;
};

struct yi_kv {
	struct yi_kv_config config;
	const struct yi_type_traits *traits;
	size_t row_bytes;
	uint32_t len;
	uint32_t pending;         /* the forward pass counts tokens of a batch here; 0 between */
	struct yi_kv_part *parts; /* shared, in order, one behind the other */
	uint32_t n_parts;
	uint32_t own_start;        /* positions from here on lie in own buffers */
	struct yi_kv_buffers *own; /* NULL until there is something to hold */
};

/* Row of a position in the sequence's own buffers. */
static inline uint32_t yi_kv_own_row(const struct yi_kv *kv, uint32_t position)
{
	uint32_t row = position - kv->own_start;

	return kv->config.alloc == YI_KV_RING ? row % kv->config.max_tokens : row;
}

#endif
