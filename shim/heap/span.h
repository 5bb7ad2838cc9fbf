/* SPDX-License-Identifier: MIT */
/*
 * span: a run of granules cut into slots of one class, belonging to one heap.
 *
 * A span is carved step by step, a page of slots at a time, so that untouched pages cost nothing.
 * Slots whose page was given back are parked: on no list, marked in a bitmap, and put back on the
 * list before a new span is taken.
 *
 * All functions are for the heap's holder (its owner, busy; or the helper that stole it), unless
 * said otherwise.
 */
#ifndef TM_HEAP_SPAN_H
#define TM_HEAP_SPAN_H

#include "shim/heap/heap.h"
#include "shim/heap/zone.h"

/*
 * [const after boot] False: spans have no side entries. Without the account, entries only say
 * whether a slot is in use, and the requested size of a medium one.
 */
extern TM_HIDDEN bool tm_span_keeps_entries;

enum tm_span_kind {
	TM_SPAN_NONE = 0,
	TM_SPAN_SMALL = 1,
	TM_SPAN_MEDIUM = 2,
	/* not a span's kind: what the fast paths call a medium slot that fills its granule */
	TM_SPAN_SOLO = 3,
};

/*
 * Put slots of the class onto the heap's empty list: from other threads' frees, parked slots,
 * orphans, by carving, or from a new span. Returns the class, or -ENOMEM. Where little may be mapped
 * it may be a larger one whose list has slots, aligned as well: one of many sizes then needs no span.
 */
int tm_span_fill(struct tm_heap *h, unsigned klass);

/*
 * The smallest larger class of up to `limit` bytes whose list has slots, or got some by carving, all
 * aligned as those of this class are; 0: there is none.
 */
unsigned tm_span_stand_in(struct tm_heap *h, unsigned klass, size_t limit);

/*
 * Translate the entries of one span or arena block to rows of `to`. `known`: rows translated so far
 * from one heap to another, zeros at first. Returns how many entries changed.
 */
struct tm_span_rows {
	uint16_t
		id[TM_HEAP_ROWS]; /* by row of `from`: the id in `to`, with bit 0 set; 0: unknown */
};
/* The one table there is, cleared: it is too large for the stack of a coroutine. [heaps lock] */
struct tm_span_rows *tm_span_rows_clear(void);
uint32_t tm_span_translate(struct tm_heap *from, struct tm_heap *to, const struct tm_granule *head,
			   struct tm_span_rows *known);

/*
 * Move a span of an orphan to another heap, with its sets of free slots, but without those on lists
 * (stray.h). Entries are translated to rows of `to`; returns how many. [heaps lock; `to` held by the
 * caller]
 */
uint32_t tm_span_move(struct tm_heap *from, struct tm_heap *to, struct tm_granule *head,
		      struct tm_span_rows *known);

/* Give a wholly free span back. Its slots must be on no list. */
void tm_span_release(struct tm_heap *h, struct tm_granule *g);

TM_INLINE struct tm_granule *tm_span_head(struct tm_granule *g)
{
	return tm_granule_at(g->head);
}

TM_INLINE char *tm_span_base(const struct tm_granule *head)
{
	return (char *)tm_zone.base + ((size_t)(head - tm_zone.granules) << TM_GRANULE_SHIFT);
}

/* Index of the first carved slot; those before it were never handed out. */
TM_INLINE uint32_t tm_span_first(const struct tm_granule *head)
{
	return (uint32_t)(head->nslots - head->carved);
}

/* Index of the slot that starts at p; -1 if none was carved there. Any thread. */
int32_t tm_span_index(const struct tm_granule *head, const void *p);

/*
 * The program advised, locked or protected these pages (H93). tm_span_taint marks the spans of
 * medium slots among them: their frees take the slow path, which calls tm_span_cleanse to map the
 * slot's whole pages anew before another request gets them. Any thread.
 */
void tm_span_taint(const void *addr, size_t bytes);
void tm_span_cleanse(const struct tm_granule *head, void *slot);

/* Usable bytes of a slot: of its class, or of an arena's object. */
size_t tm_span_slot_bytes(const struct tm_granule *head, uint32_t index);

/* Address of a slot's side entry. */
TM_INLINE size_t tm_span_entry_bytes(const struct tm_granule *head)
{
	return head->kind == TM_SPAN_SMALL ? 3 : 8;
}

TM_INLINE void *tm_span_entry(const struct tm_granule *head, uint32_t index)
{
	return head->side + tm_span_entry_bytes(head) * index;
}

/* For whoever holds the slot. */
TM_INLINE void tm_span_entry_set_free(const struct tm_granule *head, uint32_t index)
{
	__builtin_memset(tm_span_entry(head, index), 0xff, 2);
}

TM_INLINE bool tm_span_entry_is_free(const struct tm_granule *head, uint32_t index)
{
	return *(const uint8_t *)tm_span_entry(head, index) == 0xff &&
	       ((const uint8_t *)tm_span_entry(head, index))[1] == 0xff;
}

#endif
