/* SPDX-License-Identifier: MIT */
/*
 * samples: the time-dependent data of the ledger: heartbeat, counters, rings of samples per second,
 * minute and hour, events; and the windows of epoch.h. When something is due, the next thread on a
 * slow path does it, or the helper; an idle process spends nothing.
 */
#ifndef TM_SAMPLES_H
#define TM_SAMPLES_H

#include "shim/base/ledger_format.h"

void tm_samples_init(void);

/*
 * Called on slow paths; bytes: of the block. Reads the clock only now and then and does what is
 * due. The caller holds its heap and no lock.
 */
void tm_samples_pass(size_t bytes);

/* For the helper: does everything that is due, without slicing it. */
void tm_samples_tick(uint64_t now_ms);

/* Writes counters and a sample now, due or not: at process end, or on the command's request. */
void tm_samples_now(void);

/*
 * Writes the tiers' counts of refused requests at once, since a program may end because of one. Any
 * thread, with any lock held.
 */
void tm_samples_refused(void);

/*
 * Records an event; those of one kind within a second are merged. tier, a, b: see ledger_format.h.
 * Any thread, with any lock held.
 */
void tm_samples_event(enum tm_ledger_event_kind kind, unsigned tier, uint64_t a, uint64_t b);

#endif
