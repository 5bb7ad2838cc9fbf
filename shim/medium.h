/* SPDX-License-Identifier: MIT */
/*
 * medium: slow path of requests of 1 to 64 KiB: chooses their tier and the free lists that serve
 * them.
 *
 * The first that decides wins: the caller's tier (tiermalloc_alloc); the rules (asked only for
 * sites whose row may match one, or that have no row); learned lifetimes (temporary sites go to
 * arenas); else the thread's own spans, whose tier follows the phase (loading or serving).
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
	enum tm_tier tier; /* given by the caller; TM_TIER_ALL: not given */
	struct tm_site site;
	size_t asked; /* as in struct tm_routing_request */
};

/* A slot, already counted; NULL: no memory, or the tier's ceiling. The caller holds h. */
void *tm_medium_take(struct tm_heap *h, const struct tm_medium_request *r);

#endif
