/* SPDX-License-Identifier: MIT */
/*
 * inherit: marks free slots as free in a forked child whose side entries were lost.
 *
 * Side entries may lie in the parent's ledger, which the child does not keep. Its new entries all
 * read 0 (in use), those of free slots too, so a second free of a slot that the parent had freed
 * would go unnoticed. Marking all free slots at the fork would make a child that only starts
 * another program walk lists as long as its parent's. So tm_inherit_begin only sets `self` of each
 * heap to TM_HEAP_INHERITED. No free into such a heap takes the fast path; the slow path marks the
 * free slots, for the first frees of the heap's own thread class by class, then all that are left.
 */
#ifndef TM_HEAP_INHERIT_H
#define TM_HEAP_INHERIT_H

#include "shim/heap/heap.h"

/*
 * In the child, for each heap, while it has one thread: the heap's free slots are still to be
 * marked.
 */
void tm_inherit_begin(struct tm_heap *h);

/*
 * True: entries were lost in this process, so a slot that comes from another heap may be free
 * without an entry that says so.
 */
extern TM_HIDDEN bool tm_inherit_lost;

TM_INLINE bool tm_inherit_is_open(const struct tm_heap *h)
{
	return TM_UNLIKELY(h->self == TM_HEAP_INHERITED);
}

/*
 * Make the entries of this class in `owner`'s spans reliable before one of them is judged. `mine`
 * is the heap that the caller holds. NULL: it holds none; then nothing is done and the result is
 * false, which says that free slots may still look used. Takes the heaps lock if owner is another
 * heap.
 */
bool tm_inherit_settle(struct tm_heap *owner, struct tm_heap *mine, unsigned klass);

/*
 * Mark all free slots of the heap and reopen its fast path. The caller holds h, or the heaps lock
 * if h is an orphan.
 */
void tm_inherit_settle_all(struct tm_heap *h);

#endif
