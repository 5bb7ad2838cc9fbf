/* SPDX-License-Identifier: MIT */
/*
 * annex: slots of 1 to 64 KiB that somebody asked for in a tier: a rule, or tiermalloc_alloc. A heap of
 * its own for each tier, of no thread, so that such slots share no span with any others:
 *
 *   persistent  spans in the part of persistent blocks, from 1 MiB on with huge pages
 *   session     spans in the part of slots
 *   temporary   spans in the part of temporary blocks: without an account and above TM_ARENA_MAX; what
 *               is smaller lies in the arena of the thread's own heap
 *   all         requests nobody chose a tier for, where no thread's heap may have free slots
 *
 * There is none until it is asked for. A request holds the annex's lock; a free by any thread is one for
 * another heap (remote.h) and takes none. Empty spans go back when enough was freed, when memory is short
 * and when the helper looks. Spans never change to another heap, nor annexes to a thread.
 *
 * Any thread that holds a heap or none; a lock that a raw fork left behind means a new annex.
 */
#ifndef TM_HEAP_ANNEX_H
#define TM_HEAP_ANNEX_H

#include "shim/heap/heap.h"
#include "shim/heap/store.h"

TM_INLINE bool tm_annex_is(const struct tm_heap *h)
{
	return TM_UNLIKELY(atomic_load_explicit(&h->state, memory_order_relaxed) == TM_HEAP_ANNEX);
}

/* A slot of a class above TM_SMALL_CLASSES; NULL: no memory, or the tier's ceiling. */
void *tm_annex_take(enum tm_tier tier, unsigned klass, size_t requested, struct tm_site site);

/* [span.c] A span was added, whose pages may be untouched. */
void tm_annex_grown(const struct tm_heap *h, const struct tm_granule *head);

/* [heap.c] So many bytes were freed into it by others. */
void tm_annex_freed(struct tm_heap *h, size_t bytes);

/*
 * What is free in those that nobody uses just now goes back to their parts. Bytes. A look costs as much
 * as there are free slots, of which most stay where they lie between others that live: so where only
 * little was freed since the last one, there is no other, unless memory is short.
 */
enum tm_annex_trim { TM_ANNEX_CHANGED, TM_ANNEX_ALL };
size_t tm_annex_trim(enum tm_annex_trim which);

/* [helper] The same for those that were idle since the tick before. */
size_t tm_annex_tick(void);

void tm_annex_init(void);

#endif
