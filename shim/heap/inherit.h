/* SPDX-License-Identifier: MIT */
/*
 * inherit: what is free in a fork's child whose entries were its parent's ledger's and are lost.
 *
 * Such a child's entries read 0, in use, those of free slots too, and a second free of a slot that the
 * parent freed would not be noticed. To say so of all at once would make a child that only starts
 * another program walk lists as long as its parent's. So its heaps' `self` says that it is not done
 * (TM_HEAP_INHERITED): no free of theirs takes the fast path, and the slow one does it, class by class for
 * the first ones of the caller's own heap, then for all that is left.
 */
#ifndef TM_HEAP_INHERIT_H
#define TM_HEAP_INHERIT_H

#include "shim/heap/heap.h"

/* In the child, for each heap. [nobody else is there] */
void tm_inherit_begin(struct tm_heap *h);

/* Whether entries were lost in this process: what comes back from others may not say that it is free. */
extern TM_HIDDEN bool tm_inherit_lost;

TM_INLINE bool tm_inherit_is_open(const struct tm_heap *h)
{
	return TM_UNLIKELY(h->self == TM_HEAP_INHERITED);
}

/*
 * Before an entry of this class in `owner`'s spans is judged. `mine`: held by the caller; NULL: it holds
 * none, and then nothing is done. False: what is free is still not known.
 */
bool tm_inherit_settle(struct tm_heap *owner, struct tm_heap *mine, unsigned klass);

/* All of it. [held by the caller, or an orphan and the heaps lock] */
void tm_inherit_settle_all(struct tm_heap *h);

#endif
