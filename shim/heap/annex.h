/* SPDX-License-Identifier: MIT */
/*
 * annex: slots of 1 to 64 KiB for which a rule or tiermalloc_alloc asked for a tier. Each tier has
 * a heap of its own that belongs to no thread, so that such slots share no span with others:
 *
 *   persistent  spans in the part of persistent blocks, with huge pages from 1 MiB on
 *   session     spans in the part of slots
 *   temporary   spans in the part of temporary blocks: without an account and above TM_ARENA_MAX;
 *               smaller objects lie in the arena of the thread's own heap
 *   all         requests without a chosen tier, of a class of which no thread's heap may have
 *               free slots
 *
 * An annex is created when it is first asked for. A request takes the annex's lock; a free by any
 * thread is one into another heap (remote.h) and takes none. Empty spans go back when enough was
 * freed, when memory is short, and when the helper looks. Spans never move to another heap, and
 * annexes never to a thread.
 *
 * Any thread may call, with or without a heap. A lock that a raw fork left behind means that a new
 * annex is made.
 */
#ifndef TM_HEAP_ANNEX_H
#define TM_HEAP_ANNEX_H

#include "shim/heap/heap.h"
#include "shim/heap/store.h"

TM_INLINE bool tm_annex_is(const struct tm_heap *h)
{
	return TM_UNLIKELY(atomic_load_explicit(&h->state, memory_order_relaxed) == TM_HEAP_ANNEX);
}

/* Allocate a slot of a class from TM_SMALL_CLASSES on; NULL: no memory, or the tier's ceiling. */
void *tm_annex_take(enum tm_tier tier, unsigned klass, size_t requested, struct tm_site site);

/*
 * [span.c] A span was added: advise huge pages for it if the annex is persistent and large enough.
 */
void tm_annex_grown(const struct tm_heap *h, const struct tm_granule *head);

/* [heap.c] Other threads freed this many bytes into the annex: trim it if that is worth it. */
void tm_annex_freed(struct tm_heap *h, size_t bytes);

/*
 * Give what is free in annexes whose lock is free back to their parts. Returns the bytes. A trim
 * walks all free slots, most of which stay, because others beside them live. So with
 * TM_ANNEX_CHANGED an annex is skipped if little was freed since its last trim; TM_ANNEX_ALL, for
 * when memory is short, trims all.
 */
enum tm_annex_trim { TM_ANNEX_CHANGED, TM_ANNEX_ALL };
size_t tm_annex_trim(enum tm_annex_trim which);

/* [helper] The same for annexes that served no request since the previous tick. */
size_t tm_annex_tick(void);

void tm_annex_init(void);

#endif
