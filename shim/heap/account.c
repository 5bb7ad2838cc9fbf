/* SPDX-License-Identifier: MIT */
#include "shim/heap/account.h"

#include "shim/base/bits.h"
#include "shim/base/hash.h"
#include "shim/heap/extent.h"
#include "shim/heap/heap.h"
#include "shim/heap/store.h"
#include "shim/heap/tier.h"
#include "shim/os/lock.h"
#include "shim/os/mem.h"

/* Initial size of a key table: its first 1024 slots lie in the heap's hot page anyway. */
#define KEY_SLOTS_FIRST 1024u
/*
 * The table grows after this many lookups that found a key in another slot than its hash points to.
 */
#define KEY_MISSES 1024u
/* A return address seen at more heights than this is recursion: it gets one row for all heights. */
#define HEIGHTS_LIMIT 32u
/* From this many rows on, a heap makes new rows for all heights only. */
#define ROWS_BY_HEIGHT 2048u
/*
 * And only for sites that have asked SEEN_MIN times, twice as often for each SEEN_STEP rows more;
 * each page of a request counts as another time. `import torch` alone asks from more than 4,095
 * places, from more than half of them once.
 */
#define SEEN_MIN 4u
#define SEEN_STEP 512u
#define SEEN_BITS 14 /* counters, by hash */
/* A frame farther below the stack's top than this is on another stack (fiber, signal stack). */
#define STACK_SPAN ((uintptr_t)16 << 20)

/*
 * Chunks whose address is kept. Freed side entries are reused by exact size, one list (bin) per
 * size.
 */
#define CHUNKS_KNOWN 16u
#define SIDE_QUANTUM 192u /* 64 slots */
#define SIDE_BINS 66u     /* up to 12,288 bytes: a span of 16-byte slots */

struct tm_account_store tm_account_store TM_AT_FORK_DATA;
bool tm_account_is_kept = true;
uint64_t tm_account_birth;

static struct tm_lock side_lock = TM_LOCK_INIT(TM_RANK_ACCOUNT);

static struct {
	char *next, *end;
	void *bin[SIDE_BINS];
	size_t mapped_bytes;
	struct tm_side_chunk chunk[CHUNKS_KNOWN];
	unsigned chunks; /* chunks so far; those beyond CHUNKS_KNOWN are not in chunk[] */
	unsigned left;   /* of the first so many, pieces are not used again */
} side;

/* In a raw fork's child a thread that it lacks may hold the lock: free side memory is lost then. */
static void lock_side(void)
{
	if (tm_lock_acquire(&side_lock) != TM_LOCK_STOLEN)
		return;
	side.next = NULL;
	side.end = NULL;
	__builtin_memset(side.bin, 0, sizeof(side.bin));
}

static unsigned probe(const struct tm_heap *h, uint64_t key, uint64_t *ret_slot)
{
	uint64_t slot = key & h->key_mask;

	for (;; slot = (slot + 1) & h->key_mask) {
		unsigned id = h->key_slot[slot];

		if (id == 0 || tm_account_row((uintptr_t)h, id)->key == key) {
			*ret_slot = slot;
			return id;
		}
	}
}

static void rehash(struct tm_heap *h, uint64_t slots)
{
	/* only the owner reads this table, and it is busy: a nested signal handler sees the twin */
	for (uint64_t i = 0; i <= h->key_mask; i++)
		h->key_slot[i] = 0;
	h->key_mask = slots - 1;
	h->key_misses = 0;
	for (unsigned row = 1; row < h->rows; row++) {
		uint64_t slot;

		if (probe(h, tm_account_row((uintptr_t)h, row << 4)->key, &slot) == 0)
			h->key_slot[slot] = (uint16_t)(row << 4);
	}
}

/* A row's height field, in units of 16 bytes plus 1, since 0 means all heights. */
static uint16_t height16(uintptr_t height)
{
	height = height / 16 + 1;
	return height > UINT16_MAX ? UINT16_MAX : (uint16_t)height;
}

static unsigned add_row(struct tm_heap *h, uint64_t key, struct tm_site site)
{
	uint64_t slot;

	if (h->rows >= TM_ROW_LIMIT)
		return 0;
	if (tm_account_store.need_rows != NULL &&
	    !tm_account_store.need_rows((uintptr_t)tm_heap_rows((uintptr_t)h),
					h->rows * sizeof(struct tm_row)))
		return 0;
	if (h->rows * 4 > h->key_mask + 1 && h->key_mask + 1 < TM_HEAP_KEY_SLOTS)
		rehash(h, 4 * (h->key_mask + 1));

	unsigned id = h->rows << 4;
	struct tm_row *row = tm_account_row((uintptr_t)h, id);
	row->site = site.return_address & ((UINT64_C(1) << 48) - 1);
	row->height = key == site.return_address ? 0 : height16(h->stack_top - site.frame);
	row->objects = 0;
	row->bytes = 0;
	if (TM_UNLIKELY(tm_tier_is_ruled()))
		h->lists_of_row[h->rows] = TM_RULED_LISTS;
	/* release: a reader of the ledger may see the row from here on */
	__atomic_store_n(&row->key, key, __ATOMIC_RELEASE);
	h->rows++;
	probe(h, key, &slot);
	h->key_slot[slot] = (uint16_t)id;
	if (tm_account_store.site != NULL)
		tm_account_store.site(h, row, site);
	return id;
}

/*
 * Count a new height of a return address, by its hash. True: it has too many. A collision only
 * lowers the limit.
 */
static bool has_many_heights(struct tm_heap *h, uintptr_t return_address)
{
	uint8_t *count = &h->heights[(return_address ^ return_address >> 8) % TM_HEAP_HEIGHTS];

	if (*count >= HEIGHTS_LIMIT)
		return true;
	++*count;
	return false;
}

/* Counts a request of a site without a row; true: it gets one. A collision gives it one earlier. */
static bool is_seen_often(struct tm_heap *h, uintptr_t return_address, size_t bytes)
{
	size_t need = SEEN_MIN << (h->rows - ROWS_BY_HEIGHT) / SEEN_STEP;
	size_t times = bytes / TM_PAGE_BYTES + 1;
	uint8_t *seen;

	if (times >= need)
		return true;
	if (h->seen == NULL)
		h->seen = tm_mem_map((size_t)1 << SEEN_BITS);
	if (h->seen == NULL)
		return true;
	seen = &h->seen[return_address * TM_HASH_GOLDEN >> (64 - SEEN_BITS)];
	if (*seen + times >= need)
		return true;
	*seen = (uint8_t)(*seen + times);
	return false;
}

/*
 * The key was found, but another one is in the slot that its hash points to. A larger table
 * separates them. In the largest table the two change places, so that the one looked up more often
 * is mostly found at once; as all slots between the two are in use, both can still be found.
 */
static void bring_home(struct tm_heap *h, uint64_t key, uint64_t slot)
{
	uint16_t id = h->key_slot[slot];

	if (h->key_mask + 1 == TM_HEAP_KEY_SLOTS) {
		h->key_slot[slot] = h->key_slot[key & h->key_mask];
		h->key_slot[key & h->key_mask] = id;
	} else if (++h->key_misses >= KEY_MISSES) {
		rehash(h, 4 * (h->key_mask + 1));
	}
}

TM_NOINLINE unsigned tm_account_find(struct tm_heap *h, uint64_t key, struct tm_site site,
				     size_t bytes)
{
	uint64_t slot;
	uint64_t plain_key = site.return_address;
	unsigned id = probe(h, key, &slot);

	if (id != 0) {
		bring_home(h, key, slot);
		return id;
	}
	id = probe(h, plain_key, &slot);
	if (id != 0) {
		bring_home(h, plain_key, slot);
		return id;
	}
	if (h->rows >= TM_ROW_LIMIT ||
	    (h->rows >= ROWS_BY_HEIGHT && !is_seen_often(h, site.return_address, bytes)))
		return 0;
	/* the remaining rows are kept for new sites */
	if (h->rows >= ROWS_BY_HEIGHT || site.frame > h->stack_top ||
	    h->stack_top - site.frame > STACK_SPAN || has_many_heights(h, site.return_address))
		key = plain_key;
	return add_row(h, key, site);
}

TM_AT_START_CODE void tm_account_init(void)
{
	tm_lock_register(&side_lock);
}

size_t tm_account_side_mapped(void)
{
	return __atomic_load_n(&side.mapped_bytes, __ATOMIC_RELAXED);
}

void tm_account_heap_begin(struct tm_heap *h)
{
	h->rows = 1;
	h->key_mask = KEY_SLOTS_FIRST - 1;
}

void tm_account_heap_clear(struct tm_heap *h)
{
	for (uint64_t i = 0; i <= h->key_mask; i++)
		h->key_slot[i] = 0;
	__builtin_memset(h->heights, 0, sizeof(h->heights));
	h->rows = 1;
}

void tm_account_meet_anew(struct tm_heap *h)
{
	for (uint64_t i = 0; i <= h->key_mask; i++)
		h->key_slot[i] = 0;
	__builtin_memset(h->heights, 0, sizeof(h->heights));
}

void tm_account_heap_move(struct tm_heap *h, uintptr_t new_stack_top)
{
	uint64_t shift = (uint64_t)(new_stack_top - h->stack_top) * TM_KEY_HEIGHT_FACTOR;

	h->stack_top = new_stack_top;
	if (shift == 0)
		return;
	for (unsigned n = 1; n < h->rows; n++) {
		struct tm_row *row = tm_account_row((uintptr_t)h, n << 4);

		if (row->height != 0)
			row->key += shift;
	}
	rehash(h, h->key_mask + 1);
}

/* [side lock] */
static void put(void *p, size_t bin)
{
	__builtin_memcpy(p, &side.bin[bin], sizeof(void *));
	side.bin[bin] = p;
}

/* [side lock] */
static void *take_from_bin(size_t bin)
{
	void *p = side.bin[bin];

	if (p != NULL)
		__builtin_memcpy(&side.bin[bin], p, sizeof(void *));
	return p;
}

/*
 * [side lock] Take a piece from the current chunk, or from `chunk` if that is given: then what is
 * left of the old one goes to a bin.
 */
static void *take_from_chunk(size_t bin, char *chunk, size_t chunk_bytes)
{
	size_t bytes = bin * SIDE_QUANTUM;

	if (chunk != NULL) {
		size_t left = (size_t)(side.end - side.next) / SIDE_QUANTUM;

		if (left >= SIDE_BINS)
			left = SIDE_BINS - 1;
		if (left > 0)
			put(side.next, left);
		side.mapped_bytes += chunk_bytes;
		side.next = chunk;
		side.end = chunk + chunk_bytes;
	}
	if ((size_t)(side.end - side.next) < bytes)
		return NULL;
	char *p = side.next;
	side.next += bytes;
	return p;
}

/* [side lock] The kernel gives no more memory: split a larger free piece. */
static void *split_larger(size_t bin)
{
	for (size_t larger = bin + 1; larger < SIDE_BINS; larger++) {
		char *p = take_from_bin(larger);

		if (p == NULL)
			continue;
		put(p + bin * SIDE_QUANTUM, larger - bin);
		return p;
	}
	return NULL;
}

/* [side lock] Record a chunk; adjoining small ones count as one. */
static void note_chunk(char *chunk, size_t bytes)
{
	struct tm_side_chunk *last = &side.chunk[side.chunks == 0 ? 0 : side.chunks - 1];

	if (chunk == NULL || side.chunks > CHUNKS_KNOWN)
		return;
	if (side.chunks != side.left && last->at + last->bytes == chunk &&
	    last->bytes + bytes <= TM_SIDE_CHUNK_BYTES) {
		last->bytes += bytes;
		return;
	}
	if (side.chunks < CHUNKS_KNOWN)
		side.chunk[side.chunks] = (struct tm_side_chunk){chunk, bytes};
	side.chunks++;
}

unsigned tm_account_side_chunks(struct tm_side_chunk **ret_chunks)
{
	const uintptr_t next = (uintptr_t)side.next;
	const uintptr_t end = (next + TM_PAGE_BYTES - 1) & ~(TM_PAGE_BYTES - 1);

	for (unsigned i = 0; i < side.chunks && i < CHUNKS_KNOWN; i++) {
		struct tm_side_chunk *c = &side.chunk[i];

		if (side.end != c->at + c->bytes || side.next <= c->at)
			continue;
		c->bytes = end - (uintptr_t)c->at;
		side.end = c->at + c->bytes;
	}
	side.left = 0;
	*ret_chunks = side.chunk;
	return side.chunks;
}

void tm_account_side_leave(void)
{
	lock_side();
	side.next = NULL;
	side.end = NULL;
	__builtin_memset(side.bin, 0, sizeof(side.bin));
	side.left = (unsigned)tm_bits_min(side.chunks, CHUNKS_KNOWN);
	tm_lock_release(&side_lock);
}

/* [side lock] Whether it is a piece of a chunk that was left. */
static bool is_left(const char *p)
{
	for (unsigned i = 0; i < side.left; i++)
		if (p >= side.chunk[i].at && p < side.chunk[i].at + side.chunk[i].bytes)
			return true;
	return false;
}

void *tm_account_side_take(size_t bytes)
{
	size_t bin = (bytes + SIDE_QUANTUM - 1) / SIDE_QUANTUM;
	void *p;

	if (bin >= SIDE_BINS)
		return NULL;
	lock_side();
	p = take_from_bin(bin);
	if (p == NULL)
		p = take_from_chunk(bin, NULL, 0);
	if (p == NULL) {
		size_t chunk_bytes = TM_SIDE_CHUNK_BYTES;
		char *chunk = NULL;

		if (tm_account_store.side_chunk != NULL)
			chunk = tm_account_store.side_chunk(&chunk_bytes);
		if (chunk == NULL)
			chunk = tm_mem_map(chunk_bytes);
		note_chunk(chunk, chunk_bytes);
		p = chunk != NULL ? take_from_chunk(bin, chunk, chunk_bytes) : split_larger(bin);
	}
	tm_lock_release(&side_lock);
	if (p != NULL)
		return p;
	/*
	 * Under an address limit free memory of the spans' part serves too, whole units first,
	 * since side entries never move. That part's lock ranks before ours.
	 */
	for (size_t pages = TM_UNIT_PAGES; pages >= TM_GRANULE_PAGES && p == NULL; pages /= 32) {
		char *chunk = tm_extent_take(TM_PART_SPAN, pages, pages);

		if (chunk == NULL)
			continue;
		lock_side();
		p = take_from_chunk(bin, chunk, pages * TM_PAGE_BYTES);
		tm_lock_release(&side_lock);
	}
	return p;
}

void tm_account_side_give(void *p, size_t bytes)
{
	lock_side();
	if (!is_left(p))
		put(p, (bytes + SIDE_QUANTUM - 1) / SIDE_QUANTUM);
	tm_lock_release(&side_lock);
}
