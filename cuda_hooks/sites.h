/* SPDX-License-Identifier: MIT */
/*
 * sites: the lifetimes of device blocks by call site and size, which decide what has earned a pool.
 * Pure: the caller passes the time; the table has a fixed size and nothing is ever removed. Callers
 * hold tm_hooks_lock.
 *
 * A size class (an eighth of a power of two) of a site starts as unknown, and its requests are
 * passed on. It becomes temporary once at least 8 blocks have died, most within a second; session
 * once at least 2 have died, most of them older; persistent if none died for 10 s. Blocks of a
 * temporary class that repeat one size may be kept whole; if a site is temporary but its sizes
 * vary, only a back end that cuts memory helps. A site that exposed a block to others (IPC,
 * dma-buf, buffer ids) is never pooled again.
 */
#ifndef TM_CUDA_SITES_H
#define TM_CUDA_SITES_H

#include "shim/base/attrs.h"
#include "shim/base/tunables.h"

enum tm_sites_use {
	TM_SITES_PASS,   /* not earned, or lost */
	TM_SITES_WHOLE,  /* one size again and again: keep blocks whole */
	TM_SITES_VARIED, /* short-lived blocks of many sizes */
};

struct tm_sites_verdict {
	enum tm_sites_use use;
	enum tm_tier tier; /* TM_TIER_ALL: unknown */
	bool vetted;       /* tm_sites_vet was called for this site */
	bool demoted;      /* never to be pooled, whatever the user's options */
};

/*
 * Counts a birth; returns the number of the block's class, for the calls below, and the verdict. 0:
 * the table is full.
 */
uint32_t tm_sites_born(uint64_t site, uint64_t bytes, uint32_t now_ms,
		       struct tm_sites_verdict *ret_verdict);
/* Counts a death in the class `number`; both times are milliseconds of one clock. */
void tm_sites_died(uint32_t number, uint32_t born_ms, uint32_t now_ms);

/* What is known about a class now. */
struct tm_sites_verdict tm_sites_verdict(uint32_t number, uint32_t now_ms);

/* Tells whether the site's module may be pooled; not if it registers memory. */
void tm_sites_vet(uint32_t number, bool fine);

/* Excludes the whole site from pools for good. */
void tm_sites_demote(uint32_t number);

#endif
