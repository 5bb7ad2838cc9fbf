/* SPDX-License-Identifier: MIT */
/*
 * tcache: slow paths behind tcache_inline.h: refills, and frees that are not of a small slot of the
 * caller's own heap.
 */
#ifndef TM_HEAP_TCACHE_H
#define TM_HEAP_TCACHE_H

#include "shim/heap/account.h"
#include "shim/heap/heap.h"

/* Refill the class's list and take a slot. The caller holds h. NULL without memory. */
void *tm_tcache_refill(struct tm_heap *h, unsigned klass, size_t requested, struct tm_site site);

/* Where there is no memory for another span: any longer slot that the heap has free, or NULL. */
void *tm_tcache_stand_in(struct tm_heap *h, unsigned klass, size_t requested, struct tm_site site);

enum tm_give_result {
	TM_GIVE_DONE,
	TM_GIVE_TRIM,     /* done, and the caller should trim this heap */
	TM_GIVE_INTERIOR, /* not the start of a slot: ignored */
	TM_GIVE_DOUBLE,   /* already free: ignored */
};

/*
 * Free a slot of any heap. `mine` is the caller's heap, which it holds, or NULL (a thread without a
 * heap, a signal handler): then the slot is pushed to its owner at once.
 */
enum tm_give_result tm_tcache_give_any(struct tm_heap *mine, void *p, struct tm_granule *g);

/* Usable bytes of a slot; 0 if p is no slot's start. */
size_t tm_tcache_usable(const void *p, struct tm_granule *g);
/* Account for a realloc in place: the object now has this requested size and site. */
void tm_tcache_resized(struct tm_heap *mine, void *p, struct tm_granule *g, size_t requested,
		       struct tm_site site);

#endif
