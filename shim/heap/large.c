/* SPDX-License-Identifier: MIT */
#include "shim/heap/large.h"

#include <errno.h>

#include "shim/heap/collapse.h"
#include "shim/heap/dense.h"
#include "shim/heap/extent.h"
#include "shim/heap/grow.h"
#include "shim/heap/pool.h"
#include "shim/heap/purge.h"
#include "shim/heap/recent.h"
#include "shim/heap/tier.h"

/* Least length of a block: of shorter ones two could begin in one granule. */
#define LEAST_PAGES TM_GRANULE_PAGES

/*
 * A block that grows to this gets a range of grow.c; one that shrinks below half of it leaves it.
 */
#define GROW_FROM_BYTES ((size_t)1 << 20)

/*
 * From this length on moving page tables is cheaper than copying, despite two calls and split
 * mappings.
 */
#define MOVE_FROM_BYTES ((size_t)4 << 20)

static size_t pages_of(size_t bytes)
{
	size_t pages = (bytes + TM_PAGE_BYTES - 1) >> TM_PAGE_SHIFT;

	return pages < LEAST_PAGES ? LEAST_PAGES : pages;
}

void tm_large_publish(void *p, size_t bytes, struct tm_large_home home)
{
	struct tm_granule *g = tm_zone_granule(p);

	g->tier = (unsigned)home.tier & 0xfu;
	g->large.page = tm_zone_page(p);
	g->large.site = 0;
	g->large.epoch = 0;
	g->large.part = (uint8_t)home.part;
	g->large.pages = pages_of(bytes);
	g->large.requested = bytes;
	if (home.part == TM_PART_GROW)
		g->large.range = home.whose;
	else
		g->large.pool = home.whose;
	/* release: whoever sees the owner sees the rest */
	__atomic_store_n(&g->owner, TM_OWNER_LARGE, __ATOMIC_RELEASE);
}

static void *take_in(const struct tm_large_request *r, enum tm_part part)
{
	size_t pages = pages_of(r->bytes);
	size_t align_pages = r->align > TM_PAGE_BYTES ? r->align >> TM_PAGE_SHIFT : 1;
	void *p;

	if (r->fill == TM_FILL_ZERO)
		p = tm_extent_take_zero(part, pages, align_pages);
	else if (r->fill == TM_FILL_GROWN)
		p = tm_extent_take_grown(part, pages);
	else
		p = tm_extent_take(part, pages, align_pages);
	if (p) {
		tm_large_publish(p, r->bytes, (struct tm_large_home){r->tier, part, NULL});
		tm_tier_add_block(r->tier, r->bytes);
		tm_dense_born(p, pages, r->fill);
	}
	return p;
}

void *tm_large_take(const struct tm_large_request *r)
{
	static const enum tm_part others[] = {TM_PART_LARGE, TM_PART_PERSISTENT, TM_PART_TEMPORARY};
	void *p;

	if (r->bytes > PTRDIFF_MAX || r->align > PTRDIFF_MAX || !tm_tier_admits(r->tier, r->bytes))
		return NULL;
	p = take_in(r, r->part);
	/* as a last resort, free runs between the blocks of other tiers */
	for (size_t i = 0; p == NULL && i < TM_ARRAY_LEN(others); i++)
		if (others[i] != r->part && tm_extent_fits(others[i], pages_of(r->bytes)))
			p = take_in(r, others[i]);
	if (TM_UNLIKELY(tm_purge_mode() == TM_PURGE_WATCHED && tm_collapse_is_wanted()))
		tm_purge_notice(1);
	return p;
}

void *tm_large_take_again(const struct tm_large_request *r)
{
	void *p;

	if (r->bytes > PTRDIFF_MAX || r->align > TM_PAGE_BYTES ||
	    !tm_tier_has_room(r->tier, r->bytes))
		return NULL;
	p = tm_recent_take(r->part, pages_of(r->bytes), r->fill);
	if (p) {
		tm_large_publish(p, r->bytes, (struct tm_large_home){r->tier, r->part, NULL});
		tm_tier_add_block(r->tier, r->bytes);
	}
	return p;
}

void *tm_large_alloc(size_t bytes, size_t align, enum tm_fill fill)
{
	return tm_large_take(
		&(struct tm_large_request){bytes, align, fill, TM_TIER_SESSION, TM_PART_LARGE});
}

/* Claim the block for freeing. Fails for a second free or an interior pointer. */
static int claim(void *p, struct tm_granule *g)
{
	uintptr_t owner = TM_OWNER_LARGE;

	if (!tm_large_starts_at(p, g))
		return -EINVAL;
	/* acquire: the block's fields are read afterwards */
	if (!__atomic_compare_exchange_n(&g->owner, &owner, TM_OWNER_NONE, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		return -EINVAL;
	return 0;
}

int tm_large_free(void *p, struct tm_granule *g)
{
	int err;

	if (TM_UNLIKELY(tm_large_starts_at(p, g) && tm_large_pool(g) != NULL))
		return tm_pool_give(p, g);
	err = claim(p, g);
	if (err)
		return err;
	tm_tier_sub_block((enum tm_tier)g->tier, g->large.requested);
	if (g->large.part == TM_PART_GROW)
		tm_grow_free(g->large.range);
	else
		tm_recent_give((enum tm_part)g->large.part, p, (size_t)g->large.pages);
	return 0;
}

/* Shrink the block, or extend it if the pages behind it are free. */
static bool resize_in_place(void *p, struct tm_granule *g, size_t pages)
{
	enum tm_part part = (enum tm_part)g->large.part;
	size_t old = (size_t)g->large.pages;

	if (pages < old)
		tm_extent_give(part, (char *)p + (pages << TM_PAGE_SHIFT), old - pages);
	else if (pages > old &&
		 !tm_extent_take_at(part, (char *)p + (old << TM_PAGE_SHIFT), pages - old))
		return false;
	g->large.pages = pages;
	return true;
}

static void *copy_to(void *to, void *p, struct tm_granule *g, size_t bytes)
{
	size_t old_bytes = tm_large_usable(g);

	__builtin_memcpy(to, p, old_bytes < bytes ? old_bytes : bytes);
	(void)tm_large_free(p, g);
	return to;
}

/*
 * Move the page tables of whole units of a block to other units. Returns bytes, or 0: nothing was
 * moved.
 */
static size_t move_units(char *to, char *from, size_t bytes)
{
	if (tm_zone_is_tainted(tm_zone_page(from), bytes >> TM_PAGE_SHIFT) ||
	    tm_zone.os->move(from, bytes, to))
		return 0;
	/* only this block had pages in these units, and they read as zeros now */
	for (size_t at = 0; at < bytes; at += TM_UNIT_BYTES) {
		struct tm_unit *u = tm_zone_unit(tm_zone_page(from + at));

		__atomic_store_n(&u->touched, 0, __ATOMIC_RELAXED);
		u->fresh = 0;
	}
	return bytes;
}

/* Move or copy a block's contents to a place with the same offset in its unit. */
static void carry(char *to, char *from, size_t bytes)
{
	size_t head = (size_t) - (uintptr_t)from & (TM_UNIT_BYTES - 1);
	size_t whole = bytes > head ? (bytes - head) & ~(TM_UNIT_BYTES - 1) : 0;

	if (whole >= MOVE_FROM_BYTES && move_units(to + head, from + head, whole)) {
		__builtin_memcpy(to, from, head);
		from += head + whole;
		to += head + whole;
		bytes -= head + whole;
	}
	__builtin_memcpy(to, from, bytes);
}

static void *carry_to_grow(void *p, struct tm_granule *g, size_t bytes)
{
	size_t old_bytes = tm_large_usable(g);
	size_t lead = old_bytes >= MOVE_FROM_BYTES ? (uintptr_t)p & (TM_UNIT_BYTES - 1) : 0;
	struct tm_range *range = tm_grow_alloc(lead + bytes, old_bytes);
	char *to;

	if (range == NULL)
		return NULL;
	to = (char *)tm_grow_start(range) + lead;
	tm_large_publish(to, bytes,
			 (struct tm_large_home){(enum tm_tier)g->tier, TM_PART_GROW, range});
	tm_tier_add_block((enum tm_tier)g->tier, bytes);
	/* a pool's slot keeps its pages, so copy */
	if (tm_large_pool(g) != NULL)
		__builtin_memcpy(to, p, old_bytes < bytes ? old_bytes : bytes);
	else
		carry(to, p, old_bytes < bytes ? old_bytes : bytes);
	(void)tm_large_free(p, g);
	return to;
}

static void *copy_to_large(void *p, struct tm_granule *g, size_t bytes)
{
	enum tm_tier tier = (enum tm_tier)g->tier;
	enum tm_part part = g->large.part == TM_PART_GROW ? tm_tier_part(tier, TM_TIER_GUESSED)
							  : (enum tm_part)g->large.part;
	enum tm_fill fill = bytes > tm_large_usable(g) ? TM_FILL_GROWN : TM_FILL_ANY;
	void *to = tm_large_take(&(struct tm_large_request){bytes, 0, fill, tier, part});

	return to ? copy_to(to, p, g, bytes) : NULL;
}

static void count_resize(enum tm_tier tier, size_t old_bytes, size_t bytes)
{
	/* not both sizes at once, which would count a peak that never was */
	if (bytes > old_bytes)
		tm_tier_add_block(tier, bytes - old_bytes);
	else
		tm_tier_sub_block(tier, old_bytes - bytes);
}

static void *resize_grow(void *p, struct tm_granule *g, size_t bytes)
{
	size_t lead = (uintptr_t)p & (TM_UNIT_BYTES - 1);
	struct tm_range *range = g->large.range;
	struct tm_large_home home = {(enum tm_tier)g->tier, TM_PART_GROW, NULL};
	size_t old_bytes = g->large.requested;
	char *to;

	if (bytes < GROW_FROM_BYTES / 2)
		return copy_to_large(p, g, bytes);
	/* no owner while its pages move, so that nothing finds the block there */
	__atomic_store_n(&g->owner, TM_OWNER_NONE, __ATOMIC_RELAXED);
	range = tm_grow_resize(range, lead + bytes);
	if (range == NULL) {
		__atomic_store_n(&g->owner, TM_OWNER_LARGE, __ATOMIC_RELEASE);
		return copy_to_large(p, g, bytes);
	}
	home.whose = range;
	to = (char *)tm_grow_start(range) + lead;
	tm_large_publish(to, bytes, home);
	count_resize(home.tier, old_bytes, bytes);
	return to;
}

void *tm_large_resize(void *p, struct tm_granule *g, size_t bytes)
{
	void *to = NULL;

	if (bytes > PTRDIFF_MAX || !tm_large_starts_at(p, g))
		return NULL;
	if (bytes > g->large.requested &&
	    !tm_tier_admits((enum tm_tier)g->tier, bytes - g->large.requested))
		return NULL;
	if (g->large.part == TM_PART_GROW)
		return resize_grow(p, g, bytes);
	if (g->large.pool != NULL ? pages_of(bytes) <= g->large.pages
				  : resize_in_place(p, g, pages_of(bytes))) {
		count_resize((enum tm_tier)g->tier, g->large.requested, bytes);
		g->large.requested = bytes;
		return p;
	}
	if (bytes >= GROW_FROM_BYTES)
		to = carry_to_grow(p, g, bytes);
	return to ? to : copy_to_large(p, g, bytes);
}

const char *tm_large_check(void)
{
	size_t granules = __atomic_load_n(&tm_zone.len, __ATOMIC_ACQUIRE) >> TM_GRANULE_SHIFT;

	for (size_t i = 0; i < granules; i++) {
		const struct tm_granule *g = &tm_zone.granules[i];
		size_t end;

		if (tm_granule_owner(g) != TM_OWNER_LARGE)
			continue;
		if (g->large.page / TM_GRANULE_PAGES != i)
			return "large: a block's words stand in the granule where it begins";
		if (g->large.pages < LEAST_PAGES || tm_large_usable(g) < g->large.requested)
			return "large: a block is long enough";
		if (g->large.part != tm_zone_unit(g->large.page)->part ||
		    (g->large.part == TM_PART_GROW && g->large.range == NULL))
			return "large: a block lies in its part";
		end = (g->large.page + g->large.pages - 1) / TM_GRANULE_PAGES;
		for (size_t k = i + 1; k < end; k++)
			if (k >= granules ||
			    tm_granule_owner(&tm_zone.granules[k]) != TM_OWNER_NONE)
				return "large: nobody owns what a block covers";
	}
	return NULL;
}
