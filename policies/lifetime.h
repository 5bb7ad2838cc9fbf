/* SPDX-License-Identifier: MIT */
/*
 * lifetime: how long blocks live, in epochs, and what that says about their call site.
 *
 * An epoch is half a second, or, once a program says where its steps are, a step. Blocks carry
 * the low 7 bits of their birth's epoch, so an age is known modulo 128 (a minute): what lives
 * longer is taken for younger in 2 of 128 cases, which the majority of a site's frees outvotes.
 * The clock is the caller's: it is asked every few requests, more often the rarer they come.
 *
 * Why time and not bytes or requests: in the traces a step is from 2 requests (a token in llama.cpp)
 * to 7,000 (an image), from .6 MiB to 3.6 GiB; but what dies within its step mostly does so within
 * 300 ms, and what outlives it lives for seconds.
 */
#ifndef TM_POLICIES_LIFETIME_H
#define TM_POLICIES_LIFETIME_H

#include <stdatomic.h>

#include "policies/sites.h"
#include "shim/base/attrs.h"
#include "shim/base/tunables.h"

#define TM_LIFETIME_EPOCH_MS 500u
#define TM_LIFETIME_EPOCH_MASK 0x7fu

/* Temporary: dies in the epoch of its birth or in the next. */
#define TM_LIFETIME_SHORT 1u

/* Never a free for so long after its first birth while serving: persistent (30 s). */
#define TM_LIFETIME_SETTLED 60u

/* [atomic] */
struct tm_lifetime_epoch {
	_Atomic uint32_t now;  /* steps or half seconds: what ages are counted in */
	_Atomic uint32_t time; /* half seconds, always */
	_Atomic uint32_t told; /* 1: the program says where steps begin, time is not asked */
	_Atomic uint64_t mark_ms;
};

TM_INLINE uint32_t tm_lifetime_now(const struct tm_lifetime_epoch *epoch)
{
	return atomic_load_explicit(&epoch->now, memory_order_relaxed);
}

/* The program begins a step. */
void tm_lifetime_step(struct tm_lifetime_epoch *epoch);

/* It is now_ms: perhaps an epoch begins. */
void tm_lifetime_tick(struct tm_lifetime_epoch *epoch, uint64_t now_ms);

TM_INLINE uint32_t tm_lifetime_time(const struct tm_lifetime_epoch *epoch)
{
	return atomic_load_explicit(&epoch->time, memory_order_relaxed);
}

/* Age of a block of which only the low bits of the birth epoch were kept. */
TM_INLINE uint32_t tm_lifetime_age(uint32_t now, uint8_t birth)
{
	return (now - birth) & TM_LIFETIME_EPOCH_MASK;
}

/* `count` blocks of a site died at that age: its record and those above it learn. */
void tm_lifetime_learn(struct tm_sites *sites, uint16_t site, uint32_t age, uint32_t count);

/* `count` blocks were born: the same. Returns the births that the record has now. */
uint32_t tm_lifetime_born(struct tm_sites *sites, uint16_t site, uint32_t time, uint32_t count);

TM_INLINE enum tm_tier tm_lifetime_belief(const struct tm_site_record *r)
{
	return (enum tm_tier)(atomic_load_explicit(&r->belief, memory_order_relaxed) &
			      ~TM_SITE_MIXED);
}

TM_INLINE bool tm_lifetime_is_mixed(const struct tm_site_record *r)
{
	return atomic_load_explicit(&r->belief, memory_order_relaxed) & TM_SITE_MIXED;
}

/* What a record says while serving; TM_TIER_ALL: nothing. */
enum tm_tier tm_lifetime_serving(const struct tm_site_record *r, uint32_t time);

/*
 * While loading: temporary where practically nothing of the site ever stayed, session where most of it
 * died late; else nothing.
 */
enum tm_tier tm_lifetime_loading(const struct tm_site_record *r);

/* Temporary where more of the site's blocks have died, and soon, than live; else nothing. */
enum tm_tier tm_lifetime_mostly(const struct tm_site_record *r);

#endif
