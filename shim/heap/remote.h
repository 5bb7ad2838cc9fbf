/* SPDX-License-Identifier: MIT */
/*
 * remote: slots freed by a thread that does not own their heap.
 *
 * The freeing thread collects them in a magazine per owner and hands a full one over by one atomic
 * push; the owner takes all of them with one exchange when a list of its own has run dry. Pushes
 * are lock-free and safe in signal handlers (tm_remote_push); magazines belong to the busy caller.
 */
#ifndef TM_HEAP_REMOTE_H
#define TM_HEAP_REMOTE_H

#include "shim/heap/heap.h"

/* Hand a chain over at once. Any thread, any context. */
void tm_remote_push(uintptr_t owner, struct tm_slot *first, struct tm_slot *last);

/* Collect one slot; hands over when full. `mine` is held by the caller. */
void tm_remote_give(struct tm_heap *mine, uintptr_t owner, struct tm_slot *slot, size_t slot_bytes);

/* Hand over everything that is collected. */
void tm_remote_flush(struct tm_heap *mine);

/* Distribute what others pushed to this heap onto its lists. Returns the number of slots. */
size_t tm_remote_drain(struct tm_heap *h);

#endif
