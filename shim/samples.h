/* SPDX-License-Identifier: MIT */
/*
 * samples: what the ledger keeps of time: heartbeat, counters, rings of seconds, minutes and hours,
 * events; and the windows of epoch.h. All of it is done by whoever comes through a slow path when it
 * is due, or by the helper; a process that does nothing does nothing for this either.
 */
#ifndef TM_SAMPLES_H
#define TM_SAMPLES_H

#include "shim/base/ledger_format.h"

void tm_samples_init(void);

/* A slow path passed, for a block of so many bytes; looks at the clock now and then. The caller holds its
 * heap and no lock. */
void tm_samples_pass(size_t bytes);

/* What is due at this time, all of it at once. The helper. */
void tm_samples_tick(uint64_t now_ms);

/* Counters and a sample now, due or not: at the end, or because the command asks. */
void tm_samples_now(void);

/* What tiers refused is in the ledger at once: a program may end by it. As below. */
void tm_samples_refused(void);

/* Something happened. Any thread, any lock; the same kind within a second is one event. */
void tm_samples_event(enum tm_ledger_event_kind kind, unsigned tier, uint64_t a, uint64_t b);

#endif
