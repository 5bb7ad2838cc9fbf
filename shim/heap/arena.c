/* SPDX-License-Identifier: MIT */
/* arena: see arena.h. */
#include "shim/heap/arena.h"

#include "shim/base/bits.h"
#include "shim/heap/account.h"
#include "shim/heap/extent.h"
#include "shim/heap/limit.h"
#include "shim/heap/meta.h"
#include "shim/heap/remote.h"
#include "shim/heap/span.h"
#include "shim/heap/tcache_inline.h"
#include "shim/heap/tier.h"
#include "shim/heap/trim.h"
#include "shim/os/clock.h"
#include "shim/os/mem.h"

#define OLD_EPOCHS 4u
#define LARGER_CLASSES 4u
/* Blocks searched for a hole before a new block is taken; the next search continues from there. */
#define SEARCH_MAX 64u
/* Empty blocks kept for the program's next step, by all heaps together. */
#define KEPT_MAX 14u

/* As for spans, see span.c. */
#define LOOK_BLOCKS_MIN 32u
#define LOOK_GROWTH 8u

static _Atomic uint32_t kept;

/*
 * Freed objects stay on lists until a request needs their lines. But while all heaps together have
 * more than NOTED_BLOCKS blocks, a heap settles its lists after a number of frees: NOTED_LEAST to
 * NOTED_MOST, between them a quarter of the blocks. Each object on a list may keep a block that is
 * otherwise empty. So these blocks and the kept ones are less than 2 MiB, or less than what lives
 * where that is more.
 */
#define NOTED_BLOCKS 12u
#define NOTED_LEAST 16u
#define NOTED_SHARE 4u
#define NOTED_MOST 256u
static _Atomic uint32_t blocks;

/* Blocks whose age is checked when an epoch begins; the next epoch continues from there. */
#define AGED_MAX 2048u

/* Blocks that a request takes over from an orphan at once. */
#define MOVED_MAX 64u

#define PAGE_LINES ((unsigned)(TM_PAGE_BYTES / TM_ARENA_LINE))
#define SIDE_BYTES ((TM_ARENA_LINES + (size_t)1) * 8)

/* --- lines ------------------------------------------------------------------------------------ */

static void set_lines(uint64_t *used, unsigned first, unsigned count, bool in_use)
{
	while (count != 0) {
		unsigned bit = first % 64;
		unsigned n = count < 64 - bit ? count : 64 - bit;
		uint64_t mask = (UINT64_MAX >> (64 - n)) << bit;

		if (in_use)
			used[first / 64] |= mask;
		else
			used[first / 64] &= ~mask;
		first += n;
		count -= n;
	}
}

static bool is_empty(const struct tm_arena_block *b)
{
	return (b->used[0] ^ 1) == 0 && (b->used[1] | b->used[2] | b->used[3]) == 0;
}

/* The line after the last one in use. */
static unsigned top_of(const struct tm_arena_block *b)
{
	unsigned word = TM_ARENA_LINES / 64 - 1;

	while (b->used[word] == 0)
		word--;
	return word * 64 + 64 - (unsigned)__builtin_clzll(b->used[word]);
}

/* The first line from `at` on that is in use, or that is not; TM_ARENA_LINES: none. */
static unsigned next_line(const struct tm_arena_block *b, unsigned at, bool in_use)
{
	while (at < TM_ARENA_LINES) {
		uint64_t bits = in_use ? b->used[at / 64] : ~b->used[at / 64];

		bits >>= at % 64;
		if (bits != 0)
			return at + (unsigned)__builtin_ctzll(bits);
		at = (at / 64 + 1) * 64;
	}
	return TM_ARENA_LINES;
}

/* The first hole of at least this many lines; TM_ARENA_LINES: none. */
static unsigned find_hole(const struct tm_arena_block *b, unsigned lines)
{
	unsigned at = TM_ARENA_FIRST, end;

	for (;;) {
		at = next_line(b, at, false);
		if (at + lines > TM_ARENA_LINES)
			return TM_ARENA_LINES;
		end = next_line(b, at, true);
		if (end - at >= lines)
			return at;
		at = end;
	}
}

/* --- blocks ----------------------------------------------------------------------------------- */

static void link_block(struct tm_heap *h, struct tm_arena_block *b)
{
	b->prev = NULL;
	b->next = h->arena_first;
	if (b->next != NULL)
		b->next->prev = b;
	h->arena_first = b;
	h->arena_blocks++;
}

static void unlink_block(struct tm_heap *h, struct tm_arena_block *b)
{
	h->arena_blocks--;
	if (b->prev != NULL)
		b->prev->next = b->next;
	else
		h->arena_first = b->next;
	if (b->next != NULL)
		b->next->prev = b->prev;
	if (h->arena_current == b)
		h->arena_current = NULL;
	if (h->arena_rover == b)
		h->arena_rover = b->next;
	if (h->arena_aged == b)
		h->arena_aged = b->next;
	if (h->census_block == b)
		h->census_block = b->next;
}

/* Records of released blocks are kept for the heap's next block. */
static struct tm_arena_block *take_record(struct tm_heap *h)
{
	struct tm_arena_block *b = h->arena_spare;

	if (b != NULL)
		h->arena_spare = b->next;
	else
		b = tm_meta_alloc(sizeof(*b), TM_CACHE_LINE);
	if (b == NULL)
		return NULL;
	__builtin_memset(b, 0, sizeof(*b));
	b->used[0] = 1;
	b->hole = TM_ARENA_LINES;
	return b;
}

static void give_record(struct tm_heap *h, struct tm_arena_block *b)
{
	b->next = h->arena_spare;
	h->arena_spare = b;
}

static void fill_granule(struct tm_heap *h, struct tm_granule *g, struct tm_arena_block *b)
{
	const struct tm_class_shape *shape = &tm_class_shape[TM_ARENA_CLASS];

	g->recip = shape->recip;
	g->index = 0;
	g->charge = shape->charge;
	g->kind = TM_SPAN_MEDIUM;
	g->tier = TM_TIER_TEMPORARY;
	g->klass = TM_ARENA_CLASS;
	g->head = tm_granule_ref(g);
	g->nslots = TM_ARENA_LINES;
	g->carved = TM_ARENA_LINES - TM_ARENA_FIRST;
	g->granules = 1;
	g->mark = 0;
	g->next = g->prev = 0;
	g->parked = b;
	g->looked = NULL;
	g->first = TM_ARENA_FIRST;
	g->owner = (uintptr_t)h | TM_OWNER_ARENA;
}

/*
 * Before another block is taken, look for free spans that could serve, as often as tm_span_fill
 * does.
 */
static void look_before_growth(struct tm_heap *h)
{
	if (!tm_trim_goes_on(h) &&
	    (h->arena_blocks < h->arena_look || h->arena_blocks < LOOK_BLOCKS_MIN ||
	     tm_clock_ns() < h->next_growth_ns))
		return;
	(void)tm_trim_before_growth(h);
	h->arena_look = h->arena_blocks + h->arena_blocks / LOOK_GROWTH;
}

static struct tm_arena_block *new_block(struct tm_heap *h)
{
	struct tm_arena_block *b;
	uint8_t *side;
	char *base;

	if (tm_limit_is_near(TM_GRANULE_BYTES) ||
	    !tm_tier_has_room(TM_TIER_TEMPORARY, TM_GRANULE_BYTES) || (b = take_record(h)) == NULL)
		return NULL;
	side = tm_account_side_take(SIDE_BYTES);
	base = side == NULL ? NULL
			    : tm_extent_take(TM_PART_SPAN, TM_GRANULE_PAGES, TM_GRANULE_PAGES);
	if (base == NULL) {
		if (side != NULL)
			tm_account_side_give(side, SIDE_BYTES);
		give_record(h, b);
		return NULL;
	}
	__builtin_memset(side, 0xff, SIDE_BYTES);
	struct tm_granule *g = tm_zone_granule(base);
	g->side = side;
	b->granule = g;
	fill_granule(h, g, b);
	tm_tier_add_span(TM_TIER_TEMPORARY, TM_GRANULE_BYTES);
	link_block(h, b);
	if (atomic_fetch_add_explicit(&blocks, 1, memory_order_relaxed) == NOTED_BLOCKS &&
	    h->arena_left > (int32_t)NOTED_LEAST)
		h->arena_left = NOTED_LEAST;
	if (tm_account_store.span != NULL)
		tm_account_store.span(g);
	return b;
}

static void release_block(struct tm_heap *h, struct tm_arena_block *b)
{
	struct tm_granule *g = b->granule;
	uint8_t *side = g->side;

	if (tm_account_store.gone != NULL)
		tm_account_store.gone(g);
	tm_tier_sub_span((enum tm_tier)g->tier, TM_GRANULE_BYTES);
	unlink_block(h, b);
	atomic_fetch_sub_explicit(&blocks, 1, memory_order_relaxed);
	g->owner = 0;
	g->kind = TM_SPAN_NONE;
	g->side = NULL;
	g->recip = 0;
	g->parked = NULL;
	give_record(h, b);
	tm_account_side_give(side, SIDE_BYTES);
	tm_extent_give(TM_PART_SPAN, tm_span_base(g), TM_GRANULE_PAGES);
}

static void set_tier(struct tm_arena_block *b, enum tm_tier tier)
{
	struct tm_granule *g = b->granule;

	b->adopted = tier != TM_TIER_TEMPORARY;
	if (g->tier == (unsigned)tier)
		return;
	tm_tier_sub_span((enum tm_tier)g->tier, TM_GRANULE_BYTES);
	g->tier = (unsigned)tier & 0xfu;
	tm_tier_add_span(tier, TM_GRANULE_BYTES);
	if (tm_account_store.span != NULL)
		tm_account_store.span(g);
}

/* The block became empty: keep it for the program's next step, or give it back to the part. */
static void became_empty(struct tm_heap *h, struct tm_arena_block *b)
{
	if (b != h->arena_current) {
		if (atomic_load_explicit(&kept, memory_order_relaxed) >= KEPT_MAX) {
			release_block(h, b);
			return;
		}
		b->kept = true;
		atomic_fetch_add_explicit(&kept, 1, memory_order_relaxed);
	}
	set_tier(b, TM_TIER_TEMPORARY);
}

static void no_longer_kept(struct tm_arena_block *b)
{
	if (!b->kept)
		return;
	b->kept = false;
	atomic_fetch_sub_explicit(&kept, 1, memory_order_relaxed);
}

/* --- objects ---------------------------------------------------------------------------------- */

static void free_object(struct tm_heap *h, const struct tm_slot *slot)
{
	struct tm_arena_block *b = tm_arena_block_of(slot);
	unsigned line = tm_arena_line_of(slot), klass = b->klass[line];

	if (klass == 0)
		return;
	set_lines(b->used, line, tm_arena_lines(klass), false);
	b->klass[line] = 0;
	b->hole = TM_ARENA_LINES;
	if (is_empty(b))
		became_empty(h, b);
}

/* The list is emptied first: a fork's child may lose the objects, but must not have them twice. */
static void settle_list(struct tm_heap *h, struct tm_slot **list)
{
	struct tm_slot *slot = *list, *next;

	*list = NULL;
	TM_SIGNAL_FENCE();
	for (; slot != NULL; slot = next) {
		next = slot->next;
		free_object(h, slot);
	}
}

void tm_arena_settle(struct tm_heap *h)
{
	for (unsigned klass = TM_SMALL_CLASSES; klass < TM_CLASSES; klass++)
		settle_list(h, &h->arena[klass]);
	settle_list(h, &h->list[TM_ARENA_CLASS]);
}

void tm_arena_noted(struct tm_heap *h)
{
	uint32_t n = NOTED_MOST;

	if (atomic_load_explicit(&blocks, memory_order_relaxed) > NOTED_BLOCKS) {
		tm_arena_settle(h);
		n = atomic_load_explicit(&blocks, memory_order_relaxed) / NOTED_SHARE;
		n = (uint32_t)tm_bits_clamp(n, NOTED_LEAST, NOTED_MOST);
	}
	h->arena_left = (int32_t)n;
}

/* Move objects freed by other threads to the lists of their classes. */
static void sort_others(struct tm_heap *h)
{
	struct tm_slot *slot = h->list[TM_ARENA_CLASS], *next;

	h->list[TM_ARENA_CLASS] = NULL;
	TM_SIGNAL_FENCE();
	for (; slot != NULL; slot = next) {
		unsigned klass = tm_arena_block_of(slot)->klass[tm_arena_line_of(slot)];

		next = slot->next;
		slot->next = h->arena[klass];
		h->arena[klass] = slot;
	}
}

/* Place an object in this block; NULL: it has no room. */
static void *put(struct tm_heap *h, struct tm_arena_block *b, unsigned klass)
{
	unsigned at, lines = tm_arena_lines(klass);

	if (b->hole < lines)
		return NULL;
	at = top_of(b);
	if (at + lines > TM_ARENA_LINES)
		at = find_hole(b, lines);
	if (at == TM_ARENA_LINES) {
		b->hole = (uint16_t)(lines - 1);
		return NULL;
	}
	no_longer_kept(b);
	if (is_empty(b))
		b->began = h->arena_epoch;
	set_lines(b->used, at, lines, true);
	b->klass[at] = (uint8_t)klass;
	b->given = 0; /* all pages count as used again: a few may be given back twice */
	TM_SIGNAL_FENCE();
	return tm_span_base(b->granule) + at * TM_ARENA_LINE;
}

static void *put_in_current(struct tm_heap *h, unsigned klass)
{
	return h->arena_current != NULL ? put(h, h->arena_current, klass) : NULL;
}

static void *search(struct tm_heap *h, unsigned klass, bool adopted)
{
	struct tm_arena_block *first = h->arena_rover != NULL ? h->arena_rover : h->arena_first;
	struct tm_arena_block *b = first;
	void *p;

	for (unsigned n = 0; b != NULL && n < SEARCH_MAX; n++) {
		p = b->adopted == adopted ? put(h, b, klass) : NULL;
		if (p != NULL) {
			if (!adopted)
				h->arena_current = b;
			return p;
		}
		b = b->next != NULL ? b->next : h->arena_first;
		if (b == first)
			break;
	}
	h->arena_rover = b;
	return NULL;
}

static void *search_all(struct tm_heap *h, unsigned klass)
{
	void *p = search(h, klass, false);

	return p != NULL ? p : search(h, klass, true);
}

/* Sources in order of cost; all that is free is tried before another block is taken. */
static void *take(struct tm_heap *h, unsigned klass)
{
	struct tm_arena_block *b;
	struct tm_slot *slot;
	void *p;

	if (tm_remote_waits(h))
		tm_remote_drain_some(h);
	if (h->list[TM_ARENA_CLASS] != NULL)
		sort_others(h);
	/* taking a slightly larger object is cheaper than settling the lists */
	for (unsigned k = klass; k < klass + LARGER_CLASSES && k < TM_CLASSES; k++) {
		slot = h->arena[k];
		if (slot == NULL)
			continue;
		h->arena[k] = slot->next;
		return slot;
	}
	p = put_in_current(h, klass);
	if (p == NULL) {
		tm_arena_settle(h);
		p = put_in_current(h, klass);
	}
	if (p == NULL)
		p = search_all(h, klass);
	if (p == NULL && tm_heap_take_arenas_from_orphans(h))
		p = search_all(h, klass);
	if (p != NULL)
		return p;
	look_before_growth(h);
	b = new_block(h);
	if (b == NULL)
		return NULL;
	h->arena_current = b;
	return put(h, b, klass);
}

static void note(const struct tm_heap *h, const void *p, unsigned id, size_t size)
{
	const struct tm_granule *g = tm_zone_granule(p);

	*(tm_entry8 *)tm_span_entry(g, tm_arena_line_of(p)) = tm_entry8_make(id, h->birth, size);
}

/* The rows of a busy or wiped heap, or of no heap, are never temporary. */
void *tm_arena_take(size_t size, struct tm_site site)
{
	uintptr_t word = tm_heap_word;
	struct tm_heap *h = tm_tcache_enter(word);
	uint64_t key = tm_account_key(site);
	uint64_t id = h->key_slot[key & h->key_mask];
	struct tm_row *row;
	void *p = NULL;

	if (h->lists_of_row[id / 16] != TM_ARENA_LISTS)
		goto leave;
	row = tm_account_row(word, id);
	if (TM_UNLIKELY(row->key != key || --h->medium_left < 0))
		goto leave;
	p = take(h, tm_class_of_medium(size));
	if (TM_LIKELY(p != NULL)) {
		row->objects++;
		row->bytes += size;
		note(h, p, (unsigned)id, size);
	}
leave:
	tm_tcache_leave(word);
	return p;
}

void *tm_arena_take_held(struct tm_heap *h, size_t size, struct tm_site site)
{
	unsigned id = tm_account_id(h, site, size);

	return h->lists_of_row[id / 16] == TM_ARENA_LISTS ? tm_arena_take_asked(h, size, site)
							  : NULL;
}

void *tm_arena_take_asked(struct tm_heap *h, size_t size, struct tm_site site)
{
	unsigned id = tm_account_id(h, site, size);
	void *p = take(h, tm_class_of_medium(size));

	if (p == NULL)
		return NULL;
	note(h, p, id, size);
	tm_account_count(h, id, size);
	tm_account_sample(h, id, size, site);
	return p;
}

/* --- upkeep ----------------------------------------------------------------------------------- */

/* Give back the pages of a block that hold no object. Returns the bytes. */
static size_t give_pages(struct tm_arena_block *b)
{
	size_t bytes = 0;

	for (unsigned page = 0; page < TM_GRANULE_PAGES; page++) {
		unsigned first = page == 0 ? TM_ARENA_FIRST : page * PAGE_LINES;

		if ((b->given >> page & 1) != 0 ||
		    next_line(b, first, true) < (page + 1) * PAGE_LINES)
			continue;
		/* refused (locked pages): the pages stay, which costs memory only */
		tm_mem_dontneed_raw(tm_span_base(b->granule) + page * TM_PAGE_BYTES, TM_PAGE_BYTES);
		b->given |= (uint16_t)(1u << page);
		bytes += TM_PAGE_BYTES;
	}
	return bytes;
}

void tm_arena_transfer(struct tm_heap *from, struct tm_heap *to)
{
	struct tm_span_rows *known = tm_span_rows_clear();
	struct tm_arena_block *next;
	unsigned n = 0;

	tm_arena_settle(from);
	for (struct tm_arena_block *b = from->arena_first; b != NULL && n < MOVED_MAX;
	     b = next, n++) {
		struct tm_granule *g = b->granule;

		next = b->next;
		unlink_block(from, b);
		(void)tm_span_translate(from, to, g, known);
		__atomic_store_n(&g->owner,
				 (uintptr_t)to | TM_OWNER_ARENA | (g->owner & TM_OWNER_TAINTED),
				 __ATOMIC_RELEASE);
		link_block(to, b);
		if (tm_account_store.span != NULL)
			tm_account_store.span(g);
	}
}

size_t tm_arena_trim(struct tm_heap *h)
{
	struct tm_arena_block *next;
	size_t bytes = 0;

	tm_arena_settle(h);
	for (struct tm_arena_block *b = h->arena_first; b != NULL; b = next) {
		next = b->next;
		if (!is_empty(b)) {
			bytes += give_pages(b);
			continue;
		}
		no_longer_kept(b);
		release_block(h, b);
		bytes += TM_GRANULE_BYTES;
	}
	return bytes;
}

void tm_arena_epoch(struct tm_heap *h, uint32_t epoch)
{
	struct tm_arena_block *b;
	unsigned n = 0;

	h->arena_epoch = epoch;
	tm_arena_settle(h);
	b = h->arena_aged != NULL ? h->arena_aged : h->arena_first;
	for (; b != NULL && n < AGED_MAX; b = b->next, n++) {
		if (b->adopted || epoch - b->began <= OLD_EPOCHS || is_empty(b))
			continue;
		if (h->arena_current == b)
			h->arena_current = NULL;
		set_tier(b, TM_TIER_SESSION);
	}
	h->arena_aged = b;
}
