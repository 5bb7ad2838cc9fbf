/* SPDX-License-Identifier: MIT */
#include "cuda_hooks/pool_slab.h"

#include "cuda_hooks/memory.h"
#include "shim/base/bits.h"

/*
 * A bin per 32nd of a power of two: few sizes share one, so the search for the best fit is short.
 */
#define FINE_BITS 5u
/* Chunks freed at once: more than the one that each free adds, so that a backlog shrinks. */
#define SOME 4u

_Static_assert(TM_POOL_SLAB_BINS == 64u << FINE_BITS, "a bin for every size");
_Static_assert(sizeof(struct tm_chunk) <= TM_CUDA_RECORD_BYTES, "a record");
_Static_assert(TM_POOL_SLAB_GRAIN >= 1u << FINE_BITS, "sizes are multiples of the grain");

static unsigned bin_of(uint64_t bytes)
{
	unsigned top = tm_bits_log2(bytes);
	return top << FINE_BITS | (unsigned)(bytes >> (top - FINE_BITS) & ((1u << FINE_BITS) - 1));
}

static void bin_add(struct tm_pool_slab *pool, struct tm_chunk *c)
{
	unsigned slot = c->slab->kind * TM_POOL_SLAB_BINS + bin_of(c->bytes);
	c->state = TM_CHUNK_FREE;
	c->slot = slot;
	tm_list_push_front(&pool->bin[slot], &c->node);
	pool->has[slot / 64] |= UINT64_C(1) << (slot % 64);
}

static void bin_remove(struct tm_pool_slab *pool, struct tm_chunk *c)
{
	unsigned slot = c->slot;
	tm_list_remove(&pool->bin[slot], &c->node);
	if (tm_list_is_empty(&pool->bin[slot]))
		pool->has[slot / 64] &= ~(UINT64_C(1) << (slot % 64));
}

static struct tm_chunk *best_in(const struct tm_list *bin, uint64_t bytes)
{
	struct tm_list_node *n;
	struct tm_chunk *best = NULL;
	for (n = bin->first; n != NULL; n = n->next) {
		struct tm_chunk *c = TM_CONTAINER_OF(n, struct tm_chunk, node);
		if (c->bytes < bytes)
			continue;
		if (c->bytes == bytes)
			return c;
		if (best == NULL || c->bytes < best->bytes ||
		    (c->bytes == best->bytes && c->at < best->at))
			best = c;
	}
	return best;
}

static struct tm_chunk *best_fit(const struct tm_pool_slab *pool, enum tm_slab_kind kind,
				 uint64_t bytes)
{
	unsigned slot = kind * TM_POOL_SLAB_BINS + bin_of(bytes), word = slot / 64;
	unsigned end = (kind + 1) * TM_POOL_SLAB_BINS / 64;
	struct tm_chunk *best = best_in(&pool->bin[slot], bytes);
	uint64_t has;
	if (best != NULL)
		return best;
	has = tm_bits_from(pool->has[word], slot % 64 + 1);
	while (has == 0) {
		if (++word == end)
			return NULL;
		has = pool->has[word];
	}
	return best_in(&pool->bin[word * 64 + tm_bits_lowest(has)], bytes);
}

/* The rest becomes a chunk of its own; without memory for its record it stays part of this one. */
static void split(struct tm_pool_slab *pool, struct tm_chunk *c, uint64_t bytes)
{
	struct tm_chunk *rest = c->bytes == bytes ? NULL : tm_cuda_memory_take_record();
	if (rest == NULL)
		return;
	rest->slab = c->slab;
	rest->at = c->at + bytes;
	rest->bytes = c->bytes - bytes;
	rest->below = c;
	rest->above = c->above;
	if (rest->above != NULL)
		rest->above->below = rest;
	c->above = rest;
	c->bytes = bytes;
	bin_add(pool, rest);
}

static struct tm_chunk *take_from(struct tm_pool_slab *pool, enum tm_slab_kind kind, uint64_t bytes)
{
	struct tm_chunk *c;
	bytes = tm_bits_align_up(bytes, TM_POOL_SLAB_GRAIN);
	pool->asked = bytes;
	c = bytes == 0 ? NULL : best_fit(pool, kind, bytes);
	if (c == NULL)
		return NULL;
	bin_remove(pool, c);
	split(pool, c, bytes);
	c->state = TM_CHUNK_LIVE;
	if (c->slab->live_bytes == 0)
		pool->empty_bytes -= c->slab->bytes;
	c->slab->live_bytes += c->bytes;
	pool->live_bytes += c->bytes;
	pool->taken++;
	return c;
}

struct tm_chunk *tm_pool_slab_take(struct tm_pool_slab *pool, uint64_t bytes)
{
	enum tm_slab_kind kind = tm_pool_slab_kind(bytes);
	struct tm_chunk *c = take_from(pool, kind, bytes);
	return c == NULL && kind == TM_SLAB_MIDDLE ? take_from(pool, TM_SLAB_LARGE, bytes) : c;
}

struct tm_chunk *tm_pool_slab_again(struct tm_pool_slab *pool, uint64_t bytes, uint32_t done)
{
	struct tm_chunk *c;
	if (pool->waiting.last == NULL)
		return NULL;
	c = TM_CONTAINER_OF(pool->waiting.last, struct tm_chunk, node);
	if (c->bytes - bytes >= TM_POOL_SLAB_GRAIN || (int32_t)(c->epoch - done) > 0)
		return NULL;
	tm_list_remove(&pool->waiting, &c->node);
	c->state = TM_CHUNK_LIVE;
	pool->wait_bytes -= c->bytes;
	pool->live_bytes += c->bytes;
	pool->taken++;
	return c;
}

struct tm_chunk *tm_pool_slab_squeeze(struct tm_pool_slab *pool, uint64_t bytes)
{
	struct tm_chunk *c = NULL;
	unsigned kind;
	for (kind = 0; kind < TM_SLAB_KINDS && c == NULL; kind++)
		c = take_from(pool, (enum tm_slab_kind)kind, bytes);
	return c;
}

void tm_pool_slab_give(struct tm_pool_slab *pool, struct tm_chunk *c, uint32_t epoch)
{
	c->epoch = epoch;
	c->state = TM_CHUNK_WAITING;
	pool->live_bytes -= c->bytes;
	pool->wait_bytes += c->bytes;
	tm_list_push_back(&pool->waiting, &c->node);
}

/* Joins b, the neighbour above, into a; both are free and in no bin. */
static void join(struct tm_chunk *a, struct tm_chunk *b)
{
	a->bytes += b->bytes;
	a->above = b->above;
	if (a->above != NULL)
		a->above->below = a;
	tm_cuda_memory_give_record(b);
}

static void release(struct tm_pool_slab *pool, struct tm_chunk *c)
{
	struct tm_chunk *other = c->above;
	pool->wait_bytes -= c->bytes;
	c->slab->live_bytes -= c->bytes;
	if (c->slab->live_bytes == 0)
		pool->empty_bytes += c->slab->bytes;
	if (other != NULL && other->state == TM_CHUNK_FREE) {
		bin_remove(pool, other);
		join(c, other);
	}
	other = c->below;
	if (other != NULL && other->state == TM_CHUNK_FREE) {
		bin_remove(pool, other);
		join(other, c);
		c = other;
	}
	bin_add(pool, c);
}

/*
 * The oldest waiting chunk if its epoch is over, else NULL. Stamps ascend; a stamp out of order
 * only delays chunks.
 */
static struct tm_chunk *oldest_over(const struct tm_pool_slab *pool, uint32_t done)
{
	struct tm_chunk *c = TM_CONTAINER_OF(pool->waiting.first, struct tm_chunk, node);
	return pool->waiting.first != NULL && (int32_t)(c->epoch - done) <= 0 ? c : NULL;
}

bool tm_pool_slab_settle(struct tm_pool_slab *pool, uint32_t done)
{
	struct tm_chunk *c;
	bool any = false;
	for (; (c = oldest_over(pool, done)) != NULL; any = true) {
		tm_list_remove(&pool->waiting, &c->node);
		release(pool, c);
	}
	return any;
}

bool tm_pool_slab_settle_some(struct tm_pool_slab *pool, uint32_t done)
{
	struct tm_chunk *c;
	unsigned i;
	for (i = 0; i < SOME && (c = oldest_over(pool, done)) != NULL; i++) {
		if (c->node.next == NULL && c->bytes == pool->asked)
			break;
		tm_list_remove(&pool->waiting, &c->node);
		release(pool, c);
	}
	return i != 0;
}

bool tm_pool_slab_add(struct tm_pool_slab *pool, uint64_t at, uint64_t bytes,
		      enum tm_slab_kind kind)
{
	struct tm_slab *slab = tm_cuda_memory_take(sizeof(*slab));
	struct tm_chunk *c = tm_cuda_memory_take_record();
	if (slab == NULL || c == NULL) {
		tm_cuda_memory_give(slab, sizeof(*slab));
		if (c != NULL)
			tm_cuda_memory_give_record(c);
		return false;
	}
	slab->at = at;
	slab->bytes = bytes;
	slab->kind = kind;
	slab->lowest = c;
	*c = (struct tm_chunk){.slab = slab, .at = at, .bytes = bytes};
	tm_list_push_back(&pool->slabs, &slab->node);
	pool->slab_bytes += bytes;
	pool->empty_bytes += bytes;
	pool->added++;
	bin_add(pool, c);
	return true;
}

static struct tm_slab *smallest_empty(const struct tm_pool_slab *pool)
{
	struct tm_list_node *n;
	struct tm_slab *best = NULL;
	for (n = pool->slabs.first; n != NULL; n = n->next) {
		struct tm_slab *s = TM_CONTAINER_OF(n, struct tm_slab, node);
		if (s->live_bytes == 0 && (best == NULL || s->bytes < best->bytes))
			best = s;
	}
	return best;
}

uint64_t tm_pool_slab_remove_empty(struct tm_pool_slab *pool, uint64_t *ret_bytes)
{
	struct tm_slab *slab = smallest_empty(pool);
	uint64_t at;
	if (slab == NULL)
		return 0;
	at = slab->at;
	*ret_bytes = slab->bytes;
	bin_remove(pool, slab->lowest);
	tm_cuda_memory_give_record(slab->lowest);
	tm_list_remove(&pool->slabs, &slab->node);
	pool->slab_bytes -= slab->bytes;
	pool->empty_bytes -= slab->bytes;
	tm_cuda_memory_give(slab, sizeof(*slab));
	return at;
}

struct tm_slab *tm_pool_slab_around(const struct tm_pool_slab *pool, uint64_t address)
{
	struct tm_list_node *n;
	for (n = pool->slabs.first; n != NULL; n = n->next) {
		struct tm_slab *s = TM_CONTAINER_OF(n, struct tm_slab, node);
		if (address - s->at < s->bytes)
			return s;
	}
	return NULL;
}

void tm_pool_slab_clear(struct tm_pool_slab *pool)
{
	struct tm_list_node *n;
	while ((n = tm_list_pop_front(&pool->slabs)) != NULL) {
		struct tm_slab *s = TM_CONTAINER_OF(n, struct tm_slab, node);
		struct tm_chunk *c = s->lowest;
		while (c != NULL) {
			struct tm_chunk *above = c->above;
			tm_cuda_memory_give_record(c);
			c = above;
		}
		tm_cuda_memory_give(s, sizeof(*s));
	}
	*pool = (struct tm_pool_slab){0};
}

static int check_slab(const struct tm_slab *s, uint64_t *waiting)
{
	const struct tm_chunk *c, *below = NULL;
	uint64_t at = s->at, live = 0;
	for (c = s->lowest; c != NULL; below = c, c = c->above) {
		if (c->at != at || c->below != below || c->slab != s || c->bytes == 0)
			return __LINE__;
		if (c->state == TM_CHUNK_FREE && below != NULL && below->state == TM_CHUNK_FREE)
			return __LINE__;
		if (c->state != TM_CHUNK_FREE)
			live += c->bytes;
		if (c->state == TM_CHUNK_WAITING)
			*waiting += c->bytes;
		at += c->bytes;
	}
	if (at != s->at + s->bytes)
		return __LINE__;
	return live != s->live_bytes ? __LINE__ : 0;
}

int tm_pool_slab_check(const struct tm_pool_slab *pool)
{
	struct tm_list_node *n;
	uint64_t live = 0, bytes = 0, waiting = 0, empty = 0;
	for (n = pool->slabs.first; n != NULL; n = n->next) {
		const struct tm_slab *s = TM_CONTAINER_OF(n, struct tm_slab, node);
		int line = check_slab(s, &waiting);
		if (line != 0)
			return line;
		live += s->live_bytes;
		bytes += s->bytes;
		empty += s->live_bytes == 0 ? s->bytes : 0;
	}
	if (empty != pool->empty_bytes)
		return __LINE__;
	if (bytes != pool->slab_bytes || waiting != pool->wait_bytes)
		return __LINE__;
	return live != pool->live_bytes + pool->wait_bytes ? __LINE__ : 0;
}
