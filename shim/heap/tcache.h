/* SPDX-License-Identifier: MIT */
/*
 * tcache: what the fast path hands on: refills, and frees that are not a small slot of one's own.
 */
#ifndef TM_HEAP_TCACHE_H
#define TM_HEAP_TCACHE_H

#include "shim/heap/account.h"
#include "shim/heap/heap.h"

/* A slot of the class after a refill. `h` is held by the caller. NULL without memory. */
void *tm_tcache_refill(struct tm_heap *h, unsigned klass, size_t requested, struct tm_site site);

enum tm_give_result {
	TM_GIVE_DONE,
	TM_GIVE_TRIM,     /* done, and a trim of this heap is worth a look */
	TM_GIVE_INTERIOR, /* not the start of a slot: ignored */
	TM_GIVE_DOUBLE,   /* already free: ignored */
};

/*
 * Free a slot of any heap. `mine` is the caller's heap, held by it, or NULL (a thread without one,
 * a signal handler): then the slot is pushed to its owner at once.
 */
enum tm_give_result tm_tcache_give_any(struct tm_heap *mine, void *p, struct tm_granule *g);

/* Requested and usable bytes of a live slot; 0 if p is no slot's start. */
size_t tm_tcache_usable(const void *p, struct tm_granule *g);
/* The account's side of a realloc in place: the object now has this size and site. */
void tm_tcache_resized(struct tm_heap *mine, void *p, struct tm_granule *g, size_t requested,
		       struct tm_site site);

#endif
