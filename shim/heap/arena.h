/* SPDX-License-Identifier: MIT */
/*
 * arena: allocates temporary objects of more than 1 KiB, in blocks of one granule per heap, cut
 * into lines of 256 bytes. A new object goes on top of the newest block, or into a hole of some
 * block. Freeing the topmost object lowers the top again, and an empty block is used from its
 * beginning again; neither takes a system call.
 *
 * To the rest of the library an arena block is a span of medium slots of 256 bytes, in which only
 * the entry of an object's first line is used: account, scan, reports, detection of wrong frees and
 * frees by other threads work as for spans. Objects are longer than such a slot: tm_arena_bytes
 * tells their length. The arena's own state (which lines are in use, each object's class) is in
 * private memory, since entries may be shared with a parent.
 *
 * A free only puts the object on a list of the heap, by class; the next request of that class takes
 * it from there on the fast path of slots. Lists are settled before another block is taken: the
 * lines of their objects become free for objects of any size. Objects freed by other threads wait
 * on the list of TM_ARENA_CLASS.
 *
 * A block that still holds objects more than 4 epochs after it began goes to the session tier,
 * since what lives there is not temporary. It gets new objects only when no other block has room.
 *
 * Requests of fixed sizes cost what slots do, 107 instructions a pair; 24 objects of random sizes
 * freed together cost 440 each, as slots 120. Recorded engines take 4 to 11 % more instructions in
 * all, and their peaks are within 2 %. From TM_ARENA_MAX to 64 KiB all tiers share spans, unless a
 * rule or a call asks for a tier (annex.h). Without the account there are no arenas, since rows
 * tell which requests are temporary.
 *
 * All functions but tm_arena_bytes are for the thread that holds the heap.
 */
#ifndef TM_HEAP_ARENA_H
#define TM_HEAP_ARENA_H

#include "shim/heap/heap.h"
#include "shim/heap/store.h"

#define TM_ARENA_LINE ((size_t)256)
/* Objects begin at line 1: a slot of index 0 takes the slower path when it is freed. */
#define TM_ARENA_FIRST 1u
#define TM_ARENA_LINES 256u
/* The largest object: two of them fill a block, which would hold only one of anything larger. */
#define TM_ARENA_MAX ((size_t)30720)

/* Value of lists_of_row for a row whose requests are temporary. */
#define TM_ARENA_LISTS offsetof(struct tm_heap, arena)

struct tm_arena_block {
	/* a bit per line in use; stored before an object is handed out */
	uint64_t used[TM_ARENA_LINES / 64];
	struct tm_arena_block *next, *prev; /* the heap's list of blocks */
	struct tm_granule *granule;
	uint32_t began; /* epoch of the first object since the block was last empty */
	uint16_t hole;  /* upper bound of the longest free run, in lines */
	uint16_t given; /* bit per page that was given back and not used since */
	bool adopted;
	bool kept;
	uint8_t klass[TM_ARENA_LINES]; /* of the object that starts at each line; 0: none */
};

TM_INLINE bool tm_arena_is(const struct tm_granule *head)
{
	return head->klass == TM_ARENA_CLASS;
}

#define tm_arena_block_of(slot) ((struct tm_arena_block *)tm_zone_granule(slot)->parked)
#define tm_arena_line_of(slot) ((uint16_t)(uintptr_t)(slot) / (unsigned)TM_ARENA_LINE)

/* Lines that an object of this class takes. */
TM_INLINE unsigned tm_arena_lines(unsigned klass)
{
	return (unsigned)((tm_class_bytes(klass) + TM_ARENA_LINE - 1) / TM_ARENA_LINE);
}

/*
 * Usable bytes of an object for which `requested` bytes were requested, more than TM_SMALL_MAX. A
 * reader of entries that change meanwhile may find any number there: one that can't be an object's
 * is returned unchanged.
 */
TM_INLINE size_t tm_arena_room(size_t requested)
{
	if (requested - 1 >= TM_SLOT_MAX)
		return requested;
	return tm_arena_lines(tm_class_of_medium(requested)) * TM_ARENA_LINE;
}

/* Usable bytes of the object that starts at this line; 0: none does. Any thread. */
TM_INLINE size_t tm_arena_bytes(const struct tm_granule *head, uint32_t line)
{
	unsigned klass =
		((const struct tm_arena_block *)head->parked)->klass[line % TM_ARENA_LINES];

	return klass == 0 ? 0 : tm_arena_lines(klass) * TM_ARENA_LINE;
}

/*
 * Allocate an object of TM_SMALL_MAX to TM_ARENA_MAX bytes from the calling thread's heap, if the
 * row of this site is temporary. For use before the slow path, with the account. NULL: take the
 * slow path.
 */
void *tm_arena_take(size_t size, struct tm_site site);

TM_INLINE void *tm_arena_try(size_t size, struct tm_site site)
{
	return size > TM_SMALL_MAX && size <= TM_ARENA_MAX ? tm_arena_take(size, site) : NULL;
}

/* The same on the slow path, where the caller holds the heap. */
void *tm_arena_take_held(struct tm_heap *h, size_t size, struct tm_site site);

/* The same whatever the row says, for a rule or a call that asks for the temporary tier. */
void *tm_arena_take_asked(struct tm_heap *h, size_t size, struct tm_site site);

/* Move some blocks of an orphan to another heap. [heaps lock; `to` held by the caller] */
void tm_arena_transfer(struct tm_heap *from, struct tm_heap *to);

/*
 * Settle the lists, then give empty blocks back to the part and empty pages to the kernel. Returns
 * the bytes.
 */
size_t tm_arena_trim(struct tm_heap *h);

void tm_arena_settle(struct tm_heap *h); /* settles the lists only */

/*
 * [tcache.c] The heap's arena_left is used up: settle the lists if there are many blocks, and set
 * arena_left anew.
 */
void tm_arena_noted(struct tm_heap *h);

/* An epoch begins: blocks that are older than 4 of them and not empty go to the session tier. */
void tm_arena_epoch(struct tm_heap *h, uint32_t epoch);

/*
 * In a fork's child: if the entries lay in the parent's ledger and are lost, mark those of free
 * objects free again; and repair the list of blocks if a thread that vanished was changing it. The
 * process has one thread.
 */
enum tm_arena_entries { TM_ARENA_ENTRIES_KEPT, TM_ARENA_ENTRIES_LOST };
void tm_arena_fork_child(struct tm_heap *h, enum tm_arena_entries entries);

/* 0, or the line that failed. */
int tm_arena_check(const struct tm_heap *h);

#endif
