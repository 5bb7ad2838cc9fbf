/* SPDX-License-Identifier: MIT */
/*
 * Buffers of caches, and the pool that keeps the buffers of finished sessions, sorted by rows, so
 * that the next session starts without calls of malloc.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "tools/runner/kv_buffers.h"
#include "tools/runner/mem.h"

/* Alignment of keys and values: a cache line, which is best for the dot products. */
#define ALIGN 64

struct yi_kv_pool {
	pthread_mutex_t lock;
	struct yi_kv_buffers *idle; /* [lock] fewest rows first */
	uint64_t idle_bytes;        /* [lock] */
	uint64_t max_bytes;         /* [const] */
};

uint64_t yi_kv_buffers_bytes(const struct yi_kv_buffers *buffers)
{
	return (uint64_t)buffers->rows * buffers->row_bytes * buffers->n_blocks;
}

static void buffers_free(struct yi_kv_buffers *buffers)
{
	for (uint32_t i = 0; i < buffers->n_blocks; i++)
		yi_mem_free(YI_MEM_KV, buffers->blocks[i]);
	yi_mem_free(YI_MEM_KV, buffers);
}

struct yi_kv_pool *yi_kv_pool_create(uint64_t max_bytes)
{
	struct yi_kv_pool *pool = yi_mem_zeroed(YI_MEM_KV, sizeof(*pool));

	if (pool) {
		pthread_mutex_init(&pool->lock, NULL);
		pool->max_bytes = max_bytes;
	}
	return pool;
}

void yi_kv_pool_free(struct yi_kv_pool *pool)
{
	if (!pool)
		return;
	yi_kv_pool_trim(pool);
	pthread_mutex_destroy(&pool->lock);
	yi_mem_free(YI_MEM_KV, pool);
}

uint64_t yi_kv_pool_bytes(struct yi_kv_pool *pool)
{
	uint64_t bytes;

	pthread_mutex_lock(&pool->lock);
	bytes = pool->idle_bytes;
	pthread_mutex_unlock(&pool->lock);
	return bytes;
}

void yi_kv_pool_trim(struct yi_kv_pool *pool)
{
	struct yi_kv_buffers *idle, *next;

	pthread_mutex_lock(&pool->lock);
	idle = pool->idle;
	pool->idle = NULL;
	pool->idle_bytes = 0;
	pthread_mutex_unlock(&pool->lock);
	for (; idle; idle = next) {
		next = idle->next;
		buffers_free(idle);
	}
}

/* The smallest idle buffers that fit. */
static struct yi_kv_buffers *pool_take(struct yi_kv_pool *pool, uint32_t rows, size_t row_bytes,
				       uint32_t n_blocks)
{
	struct yi_kv_buffers **link, *found;

	pthread_mutex_lock(&pool->lock);
	for (link = &pool->idle; *link; link = &(*link)->next)
		if ((*link)->rows >= rows && (*link)->row_bytes == row_bytes &&
		    (*link)->n_blocks == n_blocks)
			break;
	found = *link;
	if (found) {
		*link = found->next;
		pool->idle_bytes -= yi_kv_buffers_bytes(found);
	}
	pthread_mutex_unlock(&pool->lock);
	return found;
}

/* False: the pool is full. */
static bool pool_keep(struct yi_kv_pool *pool, struct yi_kv_buffers *buffers)
{
	uint64_t bytes = yi_kv_buffers_bytes(buffers);
	struct yi_kv_buffers **link;
	bool kept = false;

	pthread_mutex_lock(&pool->lock);
	if (bytes <= pool->max_bytes && pool->idle_bytes <= pool->max_bytes - bytes) {
		for (link = &pool->idle; *link && (*link)->rows < buffers->rows;)
			link = &(*link)->next;
		buffers->next = *link;
		*link = buffers;
		pool->idle_bytes += bytes;
		kept = true;
	}
	pthread_mutex_unlock(&pool->lock);
	return kept;
}

enum fill {
	FILL_NONE,
	FILL_ZERO, /* as llama.cpp clears its cache: no page fault is left for the first tokens */
};

static struct yi_kv_buffers *buffers_create(uint32_t rows, size_t row_bytes, uint32_t n_blocks,
					    enum fill fill)
{
	struct yi_kv_buffers *buffers =
		yi_mem_zeroed(YI_MEM_KV, sizeof(*buffers) + n_blocks * sizeof(buffers->blocks[0]));

	if (!buffers)
		return NULL;
	buffers->row_bytes = row_bytes;
	buffers->rows = rows;
	for (; buffers->n_blocks < n_blocks; buffers->n_blocks++) {
		uint8_t *block = yi_mem_aligned(YI_MEM_KV, ALIGN, rows * row_bytes);

		if (!block) {
			buffers_free(buffers);
			return NULL;
		}
		if (fill == FILL_ZERO)
			memset(block, 0, rows * row_bytes);
		buffers->blocks[buffers->n_blocks] = block;
	}
	return buffers;
}

struct yi_kv_buffers *yi_kv_buffers_take(const struct yi_kv_config *config, uint32_t rows)
{
	const struct yi_hparams *hp = &config->model->hp;
	const struct yi_type_traits *traits = yi_type_find(config->type);
	size_t row_bytes = hp->kv_dim / traits->block * traits->block_bytes;
	struct yi_kv_buffers *buffers = NULL;

	if (config->pool)
		buffers = pool_take(config->pool, rows, row_bytes, 2 * hp->n_layer);
	if (!buffers)
		buffers = buffers_create(rows, row_bytes, 2 * hp->n_layer,
					 config->alloc == YI_KV_GROW ? FILL_NONE : FILL_ZERO);
	if (buffers) {
		buffers->pool = config->pool;
		atomic_store_explicit(&buffers->users, 1, memory_order_relaxed);
	}
	return buffers;
}

int yi_kv_buffers_grow(struct yi_kv_buffers *buffers, uint32_t rows)
{
	for (uint32_t i = 0; i < buffers->n_blocks; i++) {
		uint8_t *block =
			yi_mem_resize(YI_MEM_KV, buffers->blocks[i], rows * buffers->row_bytes);

		/* Blocks that have already grown stay larger; `rows` is what all of them have. */
		if (!block)
			return -ENOMEM;
		buffers->blocks[i] = block;
	}
	buffers->rows = rows;
	return 0;
}

void yi_kv_buffers_drop(struct yi_kv_buffers *buffers)
{
	if (!buffers || atomic_fetch_sub_explicit(&buffers->users, 1, memory_order_acq_rel) != 1)
		return;
	if (!buffers->pool || !pool_keep(buffers->pool, buffers))
		buffers_free(buffers);
}
