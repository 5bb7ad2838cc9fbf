/* SPDX-License-Identifier: MIT */
/*
 * lifetime: how long the blocks of a call site live, measured in epochs, and the tier that follows.
 *
 * An epoch is half a second, or one step once the program marks its steps. A block keeps only the
 * low 7 bits of its birth epoch, so its age is known modulo 128 (a minute). A block that lives
 * longer looks younger in 2 of 128 cases; the majority of the site's frees outweighs those. This
 * module reads no clock: the caller passes the time, every few requests, and the more often the
 * rarer requests are.
 *
 * Why lifetimes are measured in time and not in bytes or requests: in the traces a step takes from
 * 2 requests (a token in llama.cpp) to 7,000 (an image), and from .6 MiB to 3.6 GiB; but a block
 * that dies within its step mostly does so within 300 ms, and a block that outlives it lives for
 * seconds.
 */
#ifndef TM_POLICIES_LIFETIME_H
#define TM_POLICIES_LIFETIME_H

#include <stdatomic.h>

#include "policies/sites.h"
#include "shim/base/attrs.h"
#include "shim/base/tunables.h"

#define TM_LIFETIME_EPOCH_MS 500u
#define TM_LIFETIME_EPOCH_MASK 0x7fu

/*
 * Age in epochs up to which a block counts as temporary: freed in the epoch of its birth or the
 * next.
 */
#define TM_LIFETIME_SHORT 1u

/*
 * While serving, a site that has freed nothing this long after its first birth is persistent (30 s,
 * in half seconds).
 */
#define TM_LIFETIME_SETTLED 60u

/* All fields are [atomic]. */
struct tm_lifetime_epoch {
	_Atomic uint32_t now;  /* epoch that ages are counted in: a step, or half a second */
	_Atomic uint32_t time; /* half seconds since the first tick, also when steps are told */
	/* 1: the program marks its steps; the clock does not advance `now` */
	_Atomic uint32_t told;
	_Atomic uint64_t mark_ms;
};

/* Current epoch, to stamp births with. */
TM_INLINE uint32_t tm_lifetime_now(const struct tm_lifetime_epoch *epoch)
{
	return atomic_load_explicit(&epoch->now, memory_order_relaxed);
}

/* Starts a new epoch because the program has begun a step. */
void tm_lifetime_step(struct tm_lifetime_epoch *epoch);

/* Tells the time, in milliseconds; starts a new epoch if one is due. */
void tm_lifetime_tick(struct tm_lifetime_epoch *epoch, uint64_t now_ms);

/* Half seconds since the first tick. */
TM_INLINE uint32_t tm_lifetime_time(const struct tm_lifetime_epoch *epoch)
{
	return atomic_load_explicit(&epoch->time, memory_order_relaxed);
}

/* Age in epochs, modulo 128, of a block whose 7-bit birth epoch is `birth`. */
TM_INLINE uint32_t tm_lifetime_age(uint32_t now, uint8_t birth)
{
	return (now - birth) & TM_LIFETIME_EPOCH_MASK;
}

/* Counts `count` frees of a site at that age, in its record and in all coarser (parent) records. */
void tm_lifetime_learn(struct tm_sites *sites, uint16_t site, uint32_t age, uint32_t count);

/*
 * Counts `count` births likewise; `time` is in half seconds. Returns the births that the site's
 * record now holds.
 */
uint32_t tm_lifetime_born(struct tm_sites *sites, uint16_t site, uint32_t time, uint32_t count);

/* Tier that most of the record's frees suggest: temporary or session; TM_TIER_ALL: none yet. */
TM_INLINE enum tm_tier tm_lifetime_belief(const struct tm_site_record *r)
{
	return (enum tm_tier)(atomic_load_explicit(&r->belief, memory_order_relaxed) &
			      ~TM_SITE_MIXED);
}

/* Whether the record's blocks differ in lifetime, so that a finer record should be asked. */
TM_INLINE bool tm_lifetime_is_mixed(const struct tm_site_record *r)
{
	return atomic_load_explicit(&r->belief, memory_order_relaxed) & TM_SITE_MIXED;
}

/* Tier that a record predicts while serving; TM_TIER_ALL: no prediction. */
enum tm_tier tm_lifetime_serving(const struct tm_site_record *r, uint32_t time);

/*
 * Tier that a record predicts while loading: temporary if practically none of the site's blocks
 * stayed, session if most of them died late; else TM_TIER_ALL.
 */
enum tm_tier tm_lifetime_loading(const struct tm_site_record *r);

/*
 * Temporary if the record believes so and at least as many of its blocks have died as live; else
 * TM_TIER_ALL.
 */
enum tm_tier tm_lifetime_mostly(const struct tm_site_record *r);

#endif
