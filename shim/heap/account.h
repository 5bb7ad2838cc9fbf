/* SPDX-License-Identifier: MIT */
/*
 * account: counts exactly which call site allocated what.
 *
 * Every slot has a side entry outside user memory; every block of whole pages has one word. An
 * allocation writes there the number of its call site's row, the birth epoch, and what is needed to
 * know the requested size; a free only marks the entry free. A row counts what its site allocated.
 * Live objects and bytes are found by scanning entries (~.6 ns a slot), so a free needs no row, and
 * frees by other threads stay exact.
 *
 *   small slots   3 bytes: u16 row << 4 | requested & 15, u8 epoch
 *   medium slots  8 bytes: u16 row << 4, u8 epoch, u40 requested
 *   blocks        8 bytes, the same, one per granule of the zone
 * An id (the u16) of TM_ENTRY_FREE: not allocated. 0: allocated before the account or the fork.
 *
 * A site's key is its return address and the height of the stack (see ../../man/tiermalloc.7):
 * heights distinguish callers behind one wrapper for the price of a subtraction.
 *
 * Rows and key tables belong to the heap's owner; an entry belongs to whoever holds the object.
 */
#ifndef TM_HEAP_ACCOUNT_H
#define TM_HEAP_ACCOUNT_H

#include "shim/base/attrs.h"
#include "shim/heap/heap.h"
#include "shim/heap/store.h"

#define TM_ENTRY_FREE 0xffffu
#define TM_ROW_LIMIT 4095u /* ids have 12 bits; row 0 is "other" */
/* Weyl's constant of the golden ratio: spreads heights (multiples of 16) over all bits. */
#define TM_KEY_HEIGHT_FACTOR UINT64_C(0x61c88647)

struct tm_entry3 {
	uint16_t id;
	uint8_t epoch;
} __attribute__((packed));
_Static_assert(sizeof(struct tm_entry3) == 3, "three bytes per small slot");

/* For medium slots and blocks: id in bits 0..15, epoch in 16..23, requested size in 24..63. */
#define TM_BIRTH_SHIFT 16
typedef uint64_t tm_entry8;

#define TM_SITE_HERE                                                                               \
	((struct tm_site){(uintptr_t)__builtin_return_address(0), (uintptr_t)__builtin_dwarf_cfa()})

TM_INLINE uint64_t tm_account_key(struct tm_site site)
{
	return site.return_address + (uint64_t)site.frame * TM_KEY_HEIGHT_FACTOR;
}

TM_INLINE struct tm_row *tm_account_row(uintptr_t heap, uint64_t id)
{
	return (struct tm_row *)(heap + TM_ROWS_OFFSET + 2 * id);
}

/*
 * Find or make the row of a site that asks for `bytes`; the slow path of tm_account_id. The caller
 * is the heap's owner, and busy. Returns the row number * 16; 0: no row, because there is no room
 * for another one, or because half of the rows are in use and the site has asked for little so far.
 */
#define TM_ACCOUNT_ALWAYS SIZE_MAX /* as `bytes`: whatever the site has asked for */
unsigned tm_account_find(struct tm_heap *h, uint64_t key, struct tm_site site, size_t bytes);

/*
 * The key's row if it is in the slot that its hash points to, which nearly all are; else NULL: the
 * fast path then takes the slow one, whose tm_account_id finds or makes the row.
 */
TM_INLINE struct tm_row *tm_account_probe(const struct tm_heap *h, uint64_t key, uint64_t *ret_id)
{
	uint64_t id = h->key_slot[key & h->key_mask];
	struct tm_row *row = tm_account_row((uintptr_t)h, id);

	*ret_id = id;
	return TM_LIKELY(row->key == key) ? row : NULL;
}

TM_INLINE unsigned tm_account_id(struct tm_heap *h, struct tm_site site, size_t bytes)
{
	uint64_t key = tm_account_key(site);
	uint64_t id;

	if (tm_account_probe(h, key, &id) != NULL)
		return (unsigned)id;
	/* sites seen at many heights (recursion, fibers) have a row without height */
	if (tm_account_probe(h, site.return_address, &id) != NULL)
		return (unsigned)id;
	return tm_account_find(h, key, site, bytes);
}

TM_INLINE void tm_account_count(struct tm_heap *h, unsigned id, size_t bytes)
{
	struct tm_row *row = tm_account_row((uintptr_t)h, id);

	row->objects++;
	row->bytes += bytes;
}

/* Offer an allocation to the sampler. For slow paths only. */
TM_INLINE void tm_account_sample(const struct tm_heap *h, unsigned id, size_t bytes,
				 struct tm_site site)
{
	if (TM_UNLIKELY(tm_account_store.sample != NULL))
		tm_account_store.sample(h, tm_account_row((uintptr_t)h, id), bytes, site);
}

/* `birth`: the field of the heap. */
TM_INLINE tm_entry8 tm_entry8_make(uint64_t id, uint64_t birth, size_t requested)
{
	return id | birth | (tm_entry8)requested << 24;
}

/* Requested bytes of a small slot, from its class's size and its id. */
TM_INLINE size_t tm_entry3_requested(size_t slot_bytes, unsigned id)
{
	return slot_bytes - ((16 - (id & 15)) & 15);
}

/*
 * Count an object of a class and write its entry. The entry of a small slot has only the size's low
 * four bits, so the size is taken to be within 15 bytes of the slot's: it is counted as that where
 * alignment asked for a larger class or nothing was requested. Returns the row's id.
 */
TM_INLINE unsigned tm_account_mark(struct tm_heap *h, unsigned klass, void *entry, size_t requested,
				   struct tm_site site)
{
	unsigned id = tm_account_id(h, site, requested);

	if (klass < TM_SMALL_CLASSES) {
		struct tm_entry3 *e = entry;

		if (requested == 0)
			requested = 1;
		requested = tm_entry3_requested(tm_class_bytes(klass), (unsigned)requested);
		e->id = (uint16_t)(id | (requested & 15));
		e->epoch = h->birth_byte[TM_BIRTH_SHIFT / 8];
	} else {
		*(tm_entry8 *)entry = tm_entry8_make(id, h->birth, requested);
	}
	tm_account_count(h, id, requested);
	return id;
}

/* [const after boot] False: no rows and birth epochs are kept. */
extern TM_HIDDEN bool tm_account_is_kept;

/* [atomic] The `birth` of new heaps. Set by the ledger together with that of every heap. */
extern TM_HIDDEN uint64_t tm_account_birth;

void tm_account_init(void);

/* Bytes mapped for side entries, by all heaps. */
size_t tm_account_side_mapped(void);

/* Prepare the account of a new heap. */
void tm_account_heap_begin(struct tm_heap *h);
/* The heap's rows are gone (in a forked child): start with none. */
void tm_account_heap_clear(struct tm_heap *h);
void tm_account_heap_move(struct tm_heap *h, uintptr_t new_stack_top);
/* Forget the keys but not the rows: each site gets a second row when it comes again. */
void tm_account_meet_anew(struct tm_heap *h);

/*
 * Side entries are taken from chunks of at most this size, of which the addresses of the first 16
 * are kept. tm_account_side_chunks returns how many chunks there are (more than 16: not all are
 * known) and cuts the newest one to the pages that have entries; the rest of it never gets any. The
 * caller must be the only thread that has a heap.
 */
#define TM_SIDE_CHUNK_BYTES ((size_t)256 << 10)
struct tm_side_chunk {
	char *at;
	size_t bytes;
};
unsigned tm_account_side_chunks(struct tm_side_chunk **ret_chunks);

/*
 * New spans take no entries any more from the chunks there are, neither what is left of them nor
 * what other spans give back. Once the ledger provides chunks, and those before it stay outside.
 */
void tm_account_side_leave(void);

/*
 * Memory for the side entries of one span, with any contents: from the ledger while it has room,
 * else private; NULL without memory. Any thread.
 */
void *tm_account_side_take(size_t bytes);
void tm_account_side_give(void *side, size_t bytes);

#endif
