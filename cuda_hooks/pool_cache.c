/* SPDX-License-Identifier: MIT */
#include "cuda_hooks/pool_cache.h"

#include "shim/base/bits.h"

/* Sizes of one eighth of a power of two share a bin. */
static unsigned bin_of(uint64_t bytes)
{
	unsigned top = bytes < 8 ? 3 : tm_bits_log2(bytes);
	return (top * 8 + (unsigned)((bytes >> (top - 3)) & 7)) % TM_POOL_CACHE_BINS;
}

static bool is_over(uint32_t epoch, uint32_t done)
{
	return (int32_t)(epoch - done) <= 0;
}

/* Unlinks a block; at: the link that points to it. */
static struct tm_pool_whole *unlink_at(struct tm_pool_cache *cache, struct tm_pool_whole **at)
{
	struct tm_pool_whole *whole = *at;
	*at = whole->next;
	whole->next = NULL;
	tm_list_remove(&cache->lru, &whole->lru);
	cache->idle_bytes -= whole->bytes;
	cache->idle_blocks--;
	return whole;
}

struct wish {
	uint64_t bytes, most;
	uint32_t kind, done;
	bool waiting; /* a block fits, but the device may still be using it */
};

/* The link to the best block of a bin, or NULL. */
static struct tm_pool_whole **best_in(struct tm_pool_whole **at, struct wish *wish)
{
	struct tm_pool_whole **best = NULL;
	for (; *at != NULL; at = &(*at)->next) {
		const struct tm_pool_whole *w = *at;
		if (w->bytes < wish->bytes || w->bytes > wish->most || w->kind != wish->kind)
			continue;
		if (!is_over(w->epoch, wish->done))
			wish->waiting = true;
		else if (w->bytes == wish->bytes)
			return at;
		else if (best == NULL || w->bytes < (*best)->bytes)
			best = at;
	}
	return best;
}

struct tm_pool_whole *tm_pool_cache_take(struct tm_pool_cache *cache, uint64_t bytes,
					 uint64_t slack, uint32_t kind, uint32_t done,
					 bool *ret_waiting)
{
	struct wish wish = {bytes, bytes + slack, kind, done, false};
	unsigned bin = bin_of(bytes), last = slack == 0 ? bin : bin_of(bytes + slack);
	struct tm_pool_whole **best;
	for (;; bin = (bin + 1) % TM_POOL_CACHE_BINS) {
		best = best_in(&cache->bin[bin], &wish);
		if (best != NULL || bin == last)
			break;
	}
	if (ret_waiting != NULL)
		*ret_waiting = wish.waiting;
	return best == NULL ? NULL : unlink_at(cache, best);
}

void tm_pool_cache_give(struct tm_pool_cache *cache, struct tm_pool_whole *whole)
{
	struct tm_pool_whole **bin = &cache->bin[bin_of(whole->bytes)];
	whole->next = *bin;
	*bin = whole;
	tm_list_push_back(&cache->lru, &whole->lru);
	cache->idle_bytes += whole->bytes;
	cache->idle_blocks++;
}

struct tm_pool_whole *tm_pool_cache_evict(struct tm_pool_cache *cache)
{
	struct tm_pool_whole *whole, **at;
	if (tm_list_is_empty(&cache->lru))
		return NULL;
	whole = TM_CONTAINER_OF(cache->lru.first, struct tm_pool_whole, lru);
	at = &cache->bin[bin_of(whole->bytes)];
	while (*at != whole)
		at = &(*at)->next;
	return unlink_at(cache, at);
}

bool tm_pool_cache_holds(const struct tm_pool_cache *cache, uint64_t at)
{
	struct tm_list_node *n;
	for (n = cache->lru.first; n != NULL; n = n->next)
		if (TM_CONTAINER_OF(n, struct tm_pool_whole, lru)->at == at)
			return true;
	return false;
}

int tm_pool_cache_check(const struct tm_pool_cache *cache)
{
	struct tm_list_node *n;
	uint64_t bytes = 0, blocks = 0, binned = 0;
	unsigned bin;
	for (n = cache->lru.first; n != NULL; n = n->next) {
		bytes += TM_CONTAINER_OF(n, struct tm_pool_whole, lru)->bytes;
		blocks++;
	}
	for (bin = 0; bin < TM_POOL_CACHE_BINS; bin++) {
		const struct tm_pool_whole *w;
		for (w = cache->bin[bin]; w != NULL; w = w->next, binned++)
			if (bin_of(w->bytes) != bin)
				return __LINE__;
	}
	if (bytes != cache->idle_bytes || blocks != cache->idle_blocks)
		return __LINE__;
	return binned != blocks ? __LINE__ : 0;
}
