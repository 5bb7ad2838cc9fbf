/* SPDX-License-Identifier: MIT */
/*
 * stray: lets other heaps take free slots out of an orphan in pieces of bounded length.
 *
 * A slot's span moves with it, but the other slots of the span lie anywhere in the orphan's list. So
 * once a slot is taken the list as a whole becomes a chain of strays: free slots whose spans may
 * have left the heap. It costs the same for any length. Whoever uses strays asks the granule of each
 * whose it is now: the heap's own go onto its list, others back to the heap of their span, as slots
 * that were freed elsewhere (remote.h). A class may have several chains; `entry` of a chain's first
 * slot is the next chain, so entries of strays are not valid.
 *
 * All functions are for the holder of the heap. Order of stores as in heap.h.
 */
#ifndef TM_HEAP_STRAY_H
#define TM_HEAP_STRAY_H

#include "shim/heap/look.h"

/* Work of one request: 1 for a slot, more for a span that moves, by its slots. Some .1 ms. */
#define TM_STRAY_WORK 4096u

/*
 * Take slots of a class, with their spans, out of an orphan onto the empty list of `to`; all that
 * are left wait for the next call. Both heaps have their struct tm_look. Entries are translated to
 * rows of `to`. [heaps lock] False: none were found within that much work.
 */
bool tm_stray_take(struct tm_heap *from, struct tm_heap *to, unsigned klass, uint32_t *work);

/* Put strays that are the heap's own onto the class's empty list. False: none were found. */
bool tm_stray_refill(struct tm_heap *h, unsigned klass);

/* The same for strays of all classes, within that much work. */
void tm_stray_settle(struct tm_heap *h, uint32_t *work);

/* And for all there are. */
void tm_stray_settle_all(struct tm_heap *h);

#endif
