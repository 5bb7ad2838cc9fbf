/* SPDX-License-Identifier: MIT */
#include "cuda_hooks/pool_vmm.h"

#include "cuda_hooks/memory.h"
#include "shim/base/bits.h"

#define STOCK_ROOM 256u
#define NO_MEMORY 2 /* CUDA_ERROR_OUT_OF_MEMORY */

/* Number of handles of a range. */
static uint32_t handles_of(uint32_t chunks, uint32_t large)
{
	return chunks - large * (TM_POOL_VMM_LARGE - 1);
}

static size_t range_bytes(uint32_t chunks, uint32_t large)
{
	return sizeof(struct tm_range) + handles_of(chunks, large) * sizeof(uint64_t);
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

static uint64_t bytes_of(const struct tm_pool_vmm *pool, const struct tm_pool_vmm_stock *stock)
{
	return stock == &pool->large ? pool->chunk_bytes * TM_POOL_VMM_LARGE : pool->chunk_bytes;
}

static uint64_t stock_chunks(const struct tm_pool_vmm *pool)
{
	return pool->small.count + (uint64_t)pool->large.count * TM_POOL_VMM_LARGE;
}

/* Adds a chunk to the stock; if there is no room for its handle, releases it. */
static void stock_add(struct tm_pool_vmm *pool, struct tm_pool_vmm_stock *stock, uint64_t handle)
{
	if (stock->count == stock->room) {
		uint32_t room = stock->room == 0 ? STOCK_ROOM : stock->room * 2;
		uint64_t *more = tm_cuda_memory_take(room * sizeof(*more));
		if (more == NULL) {
			pool->ops->release(pool->context, bytes_of(pool, stock), handle);
			return;
		}
		if (stock->handle != NULL)
			__builtin_memcpy(more, stock->handle, stock->count * sizeof(*more));
		tm_cuda_memory_give(stock->handle, stock->room * sizeof(*more));
		stock->handle = more;
		stock->room = room;
	}
	stock->handle[stock->count++] = handle;
}

/* Releases one chunk of the stock to the driver. */
static void stock_release(struct tm_pool_vmm *pool, struct tm_pool_vmm_stock *stock)
{
	pool->ops->release(pool->context, bytes_of(pool, stock), stock->handle[--stock->count]);
}

/* Moves the range's chunks to the stock and frees its record. */
static void give_up(struct tm_pool_vmm *pool, struct tm_range *r)
{
	uint32_t i, count = handles_of(r->chunks, r->large);
	for (i = 0; i < count; i++)
		stock_add(pool, i < r->large ? &pool->large : &pool->small, r->handle[i]);
	tm_cuda_memory_give(r, range_bytes(r->chunks, r->large));
}

static struct tm_list *bin_of(struct tm_pool_vmm *pool, uint64_t chunks)
{
	return &pool->bin[chunks % TM_POOL_VMM_BINS];
}

static void idle_remove(struct tm_pool_vmm *pool, struct tm_range *r)
{
	tm_list_remove(&pool->idle, &r->node);
	tm_list_remove(bin_of(pool, r->chunks), &r->same);
	pool->idle_chunks -= r->chunks;
}

/* Unmaps an idle range and gives its addresses back. */
static void take_apart(struct tm_pool_vmm *pool, struct tm_range *r)
{
	uint64_t bytes = length_of(pool, r);
	idle_remove(pool, r);
	if (pool->ops->unmap(pool->context, r->at, bytes) == 0)
		pool->ops->unreserve(pool->context, r->at, bytes);
	give_up(pool, r);
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

/* Makes one chunk. */
static int make(struct tm_pool_vmm *pool, struct tm_pool_vmm_stock *stock)
{
	uint32_t before = stock->count;
	uint64_t handle;
	int rc = pool->ops->create(pool->context, bytes_of(pool, stock), &handle);
	if (rc != 0)
		return rc;
	pool->created++;
	stock_add(pool, stock, handle);
	return stock->count == before ? NO_MEMORY : 0;
}

static bool gets_large(const struct tm_pool_vmm *pool, uint32_t chunks)
{
	return pool->large_least != 0 && chunks >= pool->large_least;
}

/* How many large chunks of the stock a range gets; a short range prefers the small ones. */
static uint32_t large_in_stock(const struct tm_pool_vmm *pool, uint32_t chunks)
{
	size_t small = gets_large(pool, chunks) ? 0 : pool->small.count;
	size_t rest = chunks > small ? chunks - small : 0;
	size_t most = tm_bits_min(chunks / TM_POOL_VMM_LARGE, pool->large.count);
	return (uint32_t)tm_bits_min((rest + TM_POOL_VMM_LARGE - 1) / TM_POOL_VMM_LARGE, most);
}

/*
 * Brings the chunks that a range needs into stock; those already made stay there if the device is
 * full.
 */
static int fill_stock(struct tm_pool_vmm *pool, uint32_t chunks, uint32_t done, uint32_t *ret_large)
{
	uint32_t large, rest, made = 0;
	int rc = 0;
	while (stock_chunks(pool) < chunks && take_apart_oldest(pool, done))
		;
	large = large_in_stock(pool, chunks);
	rest = chunks - large * TM_POOL_VMM_LARGE;
	while (gets_large(pool, chunks) && rest >= pool->small.count + TM_POOL_VMM_LARGE) {
		/* No large chunk to be had: small ones may still fit. */
		if (make(pool, &pool->large) != 0)
			break;
		large++;
		rest -= TM_POOL_VMM_LARGE;
	}
	for (; rc == 0 && pool->small.count < rest; made++) {
		if (made % TM_POOL_VMM_LARGE == 0 && pool->large.count > large)
			stock_release(pool, &pool->large);
		rc = make(pool, &pool->small);
	}
	*ret_large = large;
	return rc;
}

/* --- ranges --------------------------------------------------------------------------------------- */

static int map_all(struct tm_pool_vmm *pool, struct tm_range *r)
{
	uint32_t i, count = handles_of(r->chunks, r->large);
	uint64_t offset = 0;
	int rc = 0;
	for (i = 0; i < count; i++) {
		uint64_t bytes = pool->chunk_bytes * (i < r->large ? TM_POOL_VMM_LARGE : 1);
		rc = pool->ops->map(pool->context, r->at + offset, bytes, r->handle[i]);
		if (rc != 0)
			break;
		offset += bytes;
	}
	if (rc == 0)
		rc = pool->ops->grant(pool->context, r->at, length_of(pool, r));
	if (rc != 0 && offset != 0)
		pool->ops->unmap(pool->context, r->at, offset);
	return rc;
}

static int stitch(struct tm_pool_vmm *pool, uint32_t chunks, uint32_t done, struct tm_range **ret)
{
	struct tm_range *r = NULL;
	uint32_t i, large, count;
	int rc = fill_stock(pool, chunks, done, &large);
	if (rc != 0)
		return rc;
	r = tm_cuda_memory_take(range_bytes(chunks, large));
	if (r == NULL)
		return NO_MEMORY;
	r->chunks = chunks;
	r->large = large;
	rc = pool->ops->reserve(pool->context, length_of(pool, r), &r->at);
	if (rc != 0) {
		tm_cuda_memory_give(r, range_bytes(chunks, large));
		return rc;
	}
	count = handles_of(chunks, large);
	for (i = 0; i < count; i++) {
		struct tm_pool_vmm_stock *stock = i < large ? &pool->large : &pool->small;
		r->handle[i] = stock->handle[--stock->count];
	}
	rc = map_all(pool, r);
	if (rc != 0) {
		pool->ops->unreserve(pool->context, r->at, length_of(pool, r));
		give_up(pool, r);
		return rc;
	}
	pool->stitched++;
	*ret = r;
	return 0;
}

static void lend(struct tm_pool_vmm *pool, struct tm_range *r)
{
	r->live = true;
	tm_list_push_back(&pool->live, &r->node);
	pool->live_chunks += r->chunks;
}

/* chunk_bytes is a power of two: shift, don't divide. */
static uint64_t chunks_of(const struct tm_pool_vmm *pool, uint64_t bytes)
{
	uint64_t whole = bytes >> tm_bits_log2(pool->chunk_bytes);
	return whole + ((bytes & (pool->chunk_bytes - 1)) != 0);
}

struct tm_range *tm_pool_vmm_again(struct tm_pool_vmm *pool, uint64_t bytes, uint32_t done)
{
	uint64_t chunks = chunks_of(pool, bytes);
	struct tm_list_node *n;
	pool->asked = chunks;
	/* The most recent one of that length, whose lines may still be in caches. */
	for (n = bin_of(pool, chunks)->last; n != NULL; n = n->prev) {
		struct tm_range *r = TM_CONTAINER_OF(n, struct tm_range, same);
		if (r->chunks != chunks || !is_over(r, done))
			continue;
		idle_remove(pool, r);
		pool->hits++;
		lend(pool, r);
		return r;
	}
	return NULL;
}

int tm_pool_vmm_take(struct tm_pool_vmm *pool, uint64_t bytes, uint32_t done,
		     struct tm_range **ret_range)
{
	uint64_t chunks = chunks_of(pool, bytes);
	struct tm_range *r = tm_pool_vmm_again(pool, bytes, done);
	int rc;
	if (r == NULL) {
		if (chunks == 0 || chunks > UINT32_MAX / 16)
			return NO_MEMORY;
		rc = stitch(pool, (uint32_t)chunks, done, &r);
		if (rc != 0)
			return rc;
		lend(pool, r);
	}
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
	tm_list_push_back(bin_of(pool, range->chunks), &range->same);
	pool->idle_chunks += range->chunks;
}

uint64_t tm_pool_vmm_trim(struct tm_pool_vmm *pool, uint64_t keep_bytes, uint32_t done)
{
	uint64_t before = tm_pool_vmm_idle_bytes(pool);
	while (tm_pool_vmm_idle_bytes(pool) > keep_bytes) {
		if (pool->large.count != 0)
			stock_release(pool, &pool->large);
		else if (pool->small.count != 0)
			stock_release(pool, &pool->small);
		else if (!take_apart_oldest(pool, done))
			break;
	}
	return before - tm_pool_vmm_idle_bytes(pool);
}

uint64_t tm_pool_vmm_idle_bytes(const struct tm_pool_vmm *pool)
{
	return (pool->idle_chunks + stock_chunks(pool)) * pool->chunk_bytes;
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
	tm_pool_vmm_trim(pool, 0, 0);
	tm_cuda_memory_give(pool->small.handle, pool->small.room * sizeof(uint64_t));
	tm_cuda_memory_give(pool->large.handle, pool->large.room * sizeof(uint64_t));
	pool->small = pool->large = (struct tm_pool_vmm_stock){NULL, 0, 0};
}

int tm_pool_vmm_check(const struct tm_pool_vmm *pool)
{
	struct tm_list_node *n;
	uint64_t idle = 0, live = 0, count = 0;
	unsigned bin;
	for (n = pool->idle.first; n != NULL; n = n->next) {
		if (range_at(n)->live)
			return __LINE__;
		idle += range_at(n)->chunks;
		count++;
	}
	for (bin = 0; bin < TM_POOL_VMM_BINS; bin++)
		for (n = pool->bin[bin].first; n != NULL; n = n->next, count--)
			if (TM_CONTAINER_OF(n, struct tm_range, same)->chunks % TM_POOL_VMM_BINS !=
			    bin)
				return __LINE__;
	if (count != 0)
		return __LINE__;
	for (n = pool->live.first; n != NULL; n = n->next) {
		if (!range_at(n)->live)
			return __LINE__;
		live += range_at(n)->chunks;
	}
	if (idle != pool->idle_chunks || live != pool->live_chunks)
		return __LINE__;
	return pool->small.count > pool->small.room || pool->large.count > pool->large.room
		       ? __LINE__
		       : 0;
}
