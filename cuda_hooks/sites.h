/* SPDX-License-Identifier: MIT */
/*
 * sites: what is known of the lifetimes of device blocks, by call site and size. Decides who has earned
 * a pool. Pure: the caller gives the time; a table of fixed size, nothing is ever removed.
 *
 * A size class (an eighth of a power of two) of a site starts unknown and is passed through. Temporary:
 * at least 8 blocks died, most of them within a second. Session: at least 2 died, most of them older.
 * Persistent: none died for 10 s. Blocks of a temporary class that repeat one size may be kept whole;
 * where a site is temporary but its sizes vary, only a back end that cuts memory helps. Who showed a
 * block to others (IPC, dma-buf, buffer ids) is never pooled again.
 */
#ifndef TM_CUDA_SITES_H
#define TM_CUDA_SITES_H

#include "shim/base/attrs.h"
#include "shim/base/tunables.h"

enum tm_sites_use {
	TM_SITES_PASS,   /* not earned, or lost */
	TM_SITES_WHOLE,  /* one size again and again */
	TM_SITES_VARIED, /* short-lived blocks of many sizes */
};

struct tm_sites_verdict {
	enum tm_sites_use use;
	enum tm_tier tier; /* TM_TIER_ALL: unknown */
	bool vetted;       /* tm_sites_vet was said of this site */
	bool demoted;      /* nothing may pool it, whatever the user asks for */
};

/* A block is born. The number of its class, for the calls below; 0: the table is full. And what is thought of it. */
uint32_t tm_sites_born(uint64_t site, uint64_t bytes, uint32_t now_ms,
		       struct tm_sites_verdict *ret_verdict);
void tm_sites_died(uint32_t number, uint32_t born_ms, uint32_t now_ms);

struct tm_sites_verdict tm_sites_verdict(uint32_t number, uint32_t now_ms);

/* The site's module was looked at: fine, or one whose memory others register. */
void tm_sites_vet(uint32_t number, bool fine);

/* For ever: the whole site. */
void tm_sites_demote(uint32_t number);

#endif
