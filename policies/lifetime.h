/* SPDX-License-Identifier: MIT */
/*
 * lifetime: how long blocks live, in epochs, and what that says about their call site. An epoch is
 * meant to be a step of the program (a token, a run, an image); it is found from the stream, or told.
 * Ages are taken from 8 bits of birth epoch, as side entries have them. No clock: the caller may lend
 * milliseconds where it has them anyway.
 */
#ifndef TM_POLICIES_LIFETIME_H
#define TM_POLICIES_LIFETIME_H

#include <stdatomic.h>

#include "shim/base/attrs.h"

/* Temporary: dies in the epoch of its birth or in the next. */
#define TM_LIFETIME_SHORT 1u

/* [atomic] */
struct tm_epoch {
	_Atomic uint32_t now;
	_Atomic uint64_t mark; /* what `now` was last raised at, in bytes of the stream */
};

TM_INLINE uint32_t tm_epoch_now(const struct tm_epoch *epoch)
{
	return atomic_load_explicit(&epoch->now, memory_order_relaxed);
}

/* An epoch begins. */
void tm_epoch_raise(struct tm_epoch *epoch);

/* The stream has come to so many bytes of requests: perhaps an epoch begins. */
void tm_epoch_stream(struct tm_epoch *epoch, uint64_t born_bytes);

/* Age of a block of which only the low 8 bits of the birth epoch were kept; wraps at 256. */
TM_INLINE uint32_t tm_lifetime_age8(uint32_t now, uint8_t birth)
{
	return (uint8_t)((uint8_t)now - birth);
}

#endif
