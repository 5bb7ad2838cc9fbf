/* SPDX-License-Identifier: MIT */
/*
 * medium: requests of 1 to 64 KiB on the slow path: whose tier they are, and which lists serve them.
 *
 * In order: the caller of tiermalloc_alloc, the rules (of rows that are known to need them, and of all that
 * have no row), what was learned (arenas), and else the thread's own spans, whose tier is the phase's.
 */
#ifndef TM_MEDIUM_H
#define TM_MEDIUM_H

#include "shim/base/tunables.h"
#include "shim/heap/heap.h"
#include "shim/heap/store.h"

struct tm_medium_request {
	size_t size;
	size_t align;
	unsigned klass;    /* at least TM_SMALL_CLASSES */
	enum tm_tier tier; /* TM_TIER_ALL: nobody said */
	struct tm_site site;
	size_t asked; /* as in struct tm_routing_request */
};

/* A slot, counted; NULL: no memory, or the tier's ceiling. [h held by the caller] */
void *tm_medium_take(struct tm_heap *h, const struct tm_medium_request *r);

#endif
