/* SPDX-License-Identifier: MIT */
#include "cuda_hooks/pool_vmm.h"

#include "cuda_hooks/memory.h"
#include "shim/base/bits.h"

#define STOCK_ROOM 256u
#define NO_MEMORY 2 /* as the driver says it */

static size_t range_bytes(uint32_t chunks)
{
	return sizeof(struct tm_range) + chunks * sizeof(uint64_t);
}

static uint64_t length_of(const struct tm_pool_vmm *pool, const struct tm_range *r)
{
	return r->chunks * pool->chunk_bytes;
}

static bool is_over(const struct tm_range *r, uint32_t done)
{
	return (int32_t)(r->epoch - done) <= 0;
}

static struct tm_range *range_at(struct tm_list_node *n)
{
	return TM_CONTAINER_OF(n, struct tm_range, node);
}

/* --- chunks that are mapped nowhere --------------------------------------------------------------- */

static void release(struct tm_pool_vmm *pool, uint64_t handle)
{
	pool->ops->release(pool->context, handle);
}

/* Room for one more; a chunk that finds none goes back to the driver. */
static void stock_add(struct tm_pool_vmm *pool, uint64_t handle)
{
	if (pool->stock_count == pool->stock_room) {
		uint32_t room = pool->stock_room == 0 ? STOCK_ROOM : pool->stock_room * 2;
		uint64_t *more = tm_cuda_memory_take(room * sizeof(*more));
		if (more == NULL) {
			release(pool, handle);
			return;
		}
		if (pool->stock != NULL)
			__builtin_memcpy(more, pool->stock, pool->stock_count * sizeof(*more));
		tm_cuda_memory_give(pool->stock, pool->stock_room * sizeof(*more));
		pool->stock = more;
		pool->stock_room = room;
	}
	pool->stock[pool->stock_count++] = handle;
}

/* An idle range is taken apart. */
static void take_apart(struct tm_pool_vmm *pool, struct tm_range *r)
{
	uint64_t bytes = length_of(pool, r);
	uint32_t i;
	tm_list_remove(&pool->idle, &r->node);
	pool->idle_chunks -= r->chunks;
	if (pool->ops->unmap(pool->context, r->at, bytes) == 0)
		pool->ops->unreserve(pool->context, r->at, bytes);
	for (i = 0; i < r->chunks; i++)
		stock_add(pool, r->handle[i]);
	tm_cuda_memory_give(r, range_bytes(r->chunks));
}

static bool take_apart_oldest(struct tm_pool_vmm *pool, uint32_t done)
{
	struct tm_list_node *n;
	for (n = pool->idle.first; n != NULL; n = n->next) {
		if (!is_over(range_at(n), done))
			continue;
		take_apart(pool, range_at(n));
		return true;
	}
	return false;
}

/* At least `chunks` in stock; what was made stays there when the device is full. */
static int fill_stock(struct tm_pool_vmm *pool, uint32_t chunks, uint32_t done)
{
	while (pool->stock_count < chunks && take_apart_oldest(pool, done))
		;
	while (pool->stock_count < chunks) {
		uint32_t before = pool->stock_count;
		uint64_t handle;
		int rc = pool->ops->create(pool->context, pool->chunk_bytes, &handle);
		if (rc != 0)
			return rc;
		pool->created++;
		stock_add(pool, handle);
		if (pool->stock_count == before)
			return NO_MEMORY;
	}
	return 0;
}

/* --- ranges --------------------------------------------------------------------------------------- */

static int map_all(struct tm_pool_vmm *pool, struct tm_range *r)
{
	uint32_t i;
	int rc = 0;
	for (i = 0; i < r->chunks; i++) {
		rc = pool->ops->map(pool->context, r->at + i * pool->chunk_bytes, pool->chunk_bytes,
				    r->handle[i]);
		if (rc != 0)
			break;
	}
	if (rc == 0)
		rc = pool->ops->grant(pool->context, r->at, length_of(pool, r));
	if (rc != 0 && i != 0)
		pool->ops->unmap(pool->context, r->at, i * pool->chunk_bytes);
	return rc;
}

static int stitch(struct tm_pool_vmm *pool, uint32_t chunks, uint32_t done, struct tm_range **ret)
{
	struct tm_range *r = NULL;
	uint32_t i;
	int rc = fill_stock(pool, chunks, done);
	if (rc != 0)
		return rc;
	r = tm_cuda_memory_take(range_bytes(chunks));
	if (r == NULL)
		return NO_MEMORY;
	r->chunks = chunks;
	rc = pool->ops->reserve(pool->context, length_of(pool, r), &r->at);
	if (rc != 0) {
		tm_cuda_memory_give(r, range_bytes(chunks));
		return rc;
	}
	for (i = 0; i < chunks; i++)
		r->handle[i] = pool->stock[--pool->stock_count];
	rc = map_all(pool, r);
	if (rc != 0) {
		pool->ops->unreserve(pool->context, r->at, length_of(pool, r));
		for (i = 0; i < chunks; i++)
			stock_add(pool, r->handle[i]);
		tm_cuda_memory_give(r, range_bytes(chunks));
		return rc;
	}
	pool->stitched++;
	*ret = r;
	return 0;
}

int tm_pool_vmm_take(struct tm_pool_vmm *pool, uint64_t bytes, uint32_t done,
		     struct tm_range **ret_range)
{
	uint64_t chunks = bytes / pool->chunk_bytes + (bytes % pool->chunk_bytes != 0);
	struct tm_range *r = NULL;
	struct tm_list_node *n;
	if (chunks == 0 || chunks > UINT32_MAX / 16)
		return NO_MEMORY;
	/* The youngest of that length: its lines may still be in caches. */
	for (n = pool->idle.last; n != NULL && r == NULL; n = n->prev)
		if (range_at(n)->chunks == chunks && is_over(range_at(n), done))
			r = range_at(n);
	if (r != NULL) {
		tm_list_remove(&pool->idle, &r->node);
		pool->idle_chunks -= chunks;
		pool->hits++;
	} else {
		int rc = stitch(pool, (uint32_t)chunks, done, &r);
		if (rc != 0)
			return rc;
	}
	r->live = true;
	tm_list_push_back(&pool->live, &r->node);
	pool->live_chunks += chunks;
	*ret_range = r;
	return 0;
}

void tm_pool_vmm_give(struct tm_pool_vmm *pool, struct tm_range *range, uint32_t epoch)
{
	tm_list_remove(&pool->live, &range->node);
	pool->live_chunks -= range->chunks;
	range->live = false;
	range->epoch = epoch;
	tm_list_push_back(&pool->idle, &range->node);
	pool->idle_chunks += range->chunks;
}

uint64_t tm_pool_vmm_trim(struct tm_pool_vmm *pool, uint64_t keep_bytes, uint32_t done)
{
	uint64_t given = 0;
	while (tm_pool_vmm_idle_bytes(pool) > keep_bytes) {
		if (pool->stock_count == 0 && !take_apart_oldest(pool, done))
			break;
		if (pool->stock_count == 0)
			continue;
		release(pool, pool->stock[--pool->stock_count]);
		given += pool->chunk_bytes;
	}
	return given;
}

uint64_t tm_pool_vmm_idle_bytes(const struct tm_pool_vmm *pool)
{
	return (pool->idle_chunks + pool->stock_count) * pool->chunk_bytes;
}

uint64_t tm_pool_vmm_live_bytes(const struct tm_pool_vmm *pool)
{
	return pool->live_chunks * pool->chunk_bytes;
}

void tm_pool_vmm_grant_all(struct tm_pool_vmm *pool)
{
	struct tm_list_node *n;
	for (n = pool->live.first; n != NULL; n = n->next)
		pool->ops->grant(pool->context, range_at(n)->at, length_of(pool, range_at(n)));
	for (n = pool->idle.first; n != NULL; n = n->next)
		pool->ops->grant(pool->context, range_at(n)->at, length_of(pool, range_at(n)));
}

bool tm_pool_vmm_holds(const struct tm_pool_vmm *pool, uint64_t address)
{
	struct tm_list_node *n;
	for (n = pool->idle.first; n != NULL; n = n->next)
		if (address - range_at(n)->at < length_of(pool, range_at(n)))
			return true;
	return false;
}

void tm_pool_vmm_clear(struct tm_pool_vmm *pool)
{
	while (!tm_list_is_empty(&pool->live))
		tm_pool_vmm_give(pool, range_at(pool->live.first), 0);
	while (!tm_list_is_empty(&pool->idle))
		take_apart(pool, range_at(pool->idle.first));
	while (pool->stock_count != 0)
		release(pool, pool->stock[--pool->stock_count]);
	tm_cuda_memory_give(pool->stock, pool->stock_room * sizeof(uint64_t));
	pool->stock = NULL;
	pool->stock_room = 0;
}

int tm_pool_vmm_check(const struct tm_pool_vmm *pool)
{
	struct tm_list_node *n;
	uint64_t idle = 0, live = 0;
	for (n = pool->idle.first; n != NULL; n = n->next) {
		if (range_at(n)->live)
			return __LINE__;
		idle += range_at(n)->chunks;
	}
	for (n = pool->live.first; n != NULL; n = n->next) {
		if (!range_at(n)->live)
			return __LINE__;
		live += range_at(n)->chunks;
	}
	if (idle != pool->idle_chunks || live != pool->live_chunks)
		return __LINE__;
	return pool->stock_count > pool->stock_room ? __LINE__ : 0;
}
