/* SPDX-License-Identifier: MIT */
/*
 * arena: the back end of temporary blocks above 1 KiB: blocks of one granule per heap, cut into lines of
 * 256 bytes. A request goes on top of the newest block, or into a hole of one; the newest object that
 * is freed lowers the top again, an empty block starts from its beginning, no system call in either.
 *
 * To everybody else an arena block is a span of medium slots of 256 bytes, of which one entry says what
 * starts there: account, scan, reports, wrong frees and frees by other threads are those of spans. Its
 * objects are longer than such a slot: tm_arena_bytes. What the arena itself goes by (which lines are in
 * use, how many each object has) is in private memory: entries may be shared with a parent.
 *
 * A free only puts the object on a list of the heap, by class, from which the next request of that class
 * takes it, on the fast path of slots. Lists are settled, that is, their lines are free for objects
 * of any size, before another block is taken. Frees by others wait on the list of TM_ARENA_CLASS.
 *
 * A block that is not empty 4 epochs after it began is the session tier's from then on: what still lives
 * there is not temporary. It gets no new objects while others have room.
 *
 * Fixed sizes cost what slots do, 107 instructions a pair; 24 objects of random sizes freed together 440,
 * of slots 120; recorded engines 4 to 11 % more in all, within 2 % of the same peak. From TM_ARENA_MAX
 * to 64 KiB all tiers share spans, unless somebody asks for one (annex.h). Without the account there are no arenas: rows say what is temporary.
 *
 * All functions but tm_arena_bytes are for the heap's holder.
 */
#ifndef TM_HEAP_ARENA_H
#define TM_HEAP_ARENA_H

#include "shim/heap/heap.h"
#include "shim/heap/store.h"

#define TM_ARENA_LINE ((size_t)256)
/* The first line stays empty: slots of number 0 take the longer path when they are freed. */
#define TM_ARENA_FIRST 1u
#define TM_ARENA_LINES 256u
/* Two of the largest ones fill a block; of larger ones it would hold but one. */
#define TM_ARENA_MAX ((size_t)30720)

/* lists_of_row of a row whose requests are temporary. */
#define TM_ARENA_LISTS offsetof(struct tm_heap, arena)

struct tm_arena_block {
	uint64_t used[TM_ARENA_LINES / 64]; /* stored before the object is handed out */
	struct tm_arena_block *next, *prev; /* of the heap's */
	struct tm_granule *granule;
	uint32_t began; /* epoch of the first object since it was empty */
	uint16_t hole;  /* no free run is longer, as far as is known */
	uint16_t given; /* pages that went back and were not used since */
	bool adopted;
	bool kept;
	uint8_t klass[TM_ARENA_LINES]; /* of the object that starts there; 0: none does */
};

TM_INLINE bool tm_arena_is(const struct tm_granule *head)
{
	return head->klass == TM_ARENA_CLASS;
}

#define tm_arena_block_of(slot) ((struct tm_arena_block *)tm_zone_granule(slot)->parked)
#define tm_arena_line_of(slot) ((uint16_t)(uintptr_t)(slot) / (unsigned)TM_ARENA_LINE)

/* Lines of an object of this class. */
TM_INLINE unsigned tm_arena_lines(unsigned klass)
{
	return (unsigned)((tm_class_bytes(klass) + TM_ARENA_LINE - 1) / TM_ARENA_LINE);
}

/*
 * Bytes of one that was asked for with so many, more than TM_SMALL_MAX. Who reads entries while others
 * change them may find any number: it comes back as it is.
 */
TM_INLINE size_t tm_arena_room(size_t requested)
{
	if (requested - 1 >= TM_SLOT_MAX)
		return requested;
	return tm_arena_lines(tm_class_of_medium(requested)) * TM_ARENA_LINE;
}

/* Any thread: bytes of the object that starts at this line; 0: none does. */
TM_INLINE size_t tm_arena_bytes(const struct tm_granule *head, uint32_t line)
{
	unsigned klass =
		((const struct tm_arena_block *)head->parked)->klass[line % TM_ARENA_LINES];

	return klass == 0 ? 0 : tm_arena_lines(klass) * TM_ARENA_LINE;
}

/*
 * What is asked before the slow path, with the account: an object of TM_SMALL_MAX to TM_ARENA_MAX
 * bytes where the row of this site is temporary. NULL: take the slow path.
 */
void *tm_arena_take(size_t size, struct tm_site site);

TM_INLINE void *tm_arena_try(size_t size, struct tm_site site)
{
	return size > TM_SMALL_MAX && size <= TM_ARENA_MAX ? tm_arena_take(size, site) : NULL;
}

/* The same on the slow path, where the heap is held. */
void *tm_arena_take_held(struct tm_heap *h, size_t size, struct tm_site site);

/* And of whatever row, where somebody asks for it. */
void *tm_arena_take_asked(struct tm_heap *h, size_t size, struct tm_site site);

/* All blocks of an orphan. [heaps lock; `to` held by the caller] */
void tm_arena_transfer(struct tm_heap *from, struct tm_heap *to);

/* Frees that were only noted become free lines; blocks and pages that are empty go back. Bytes. */
size_t tm_arena_trim(struct tm_heap *h);

void tm_arena_settle(struct tm_heap *h); /* the first half of that */

/* [tcache.c] Frees were noted until arena_left was used up: of many blocks they become free lines. */
void tm_arena_noted(struct tm_heap *h);

/* An epoch begins: blocks that are older than 4 of them and not empty change their tier. */
void tm_arena_epoch(struct tm_heap *h, uint32_t epoch);

/*
 * A fork's child: entries that were its parent's ledger's are lost; they say again what is free. And what
 * a thread that vanished had begun with the list of blocks is put in order. [nobody else is there]
 */
enum tm_arena_entries { TM_ARENA_ENTRIES_KEPT, TM_ARENA_ENTRIES_LOST };
void tm_arena_fork_child(struct tm_heap *h, enum tm_arena_entries entries);

/* 0, or the line that failed. */
int tm_arena_check(const struct tm_heap *h);

#endif
