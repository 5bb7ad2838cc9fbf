/* SPDX-License-Identifier: MIT */
/*
 * clock: monotonic and wall-clock time. Any thread, any signal handler, before any constructor.
 * Reads by the vDSO once tm_clock_init has found it (a few ns), by system call before (about 100
 * ns).
 */
#ifndef TM_OS_CLOCK_H
#define TM_OS_CLOCK_H

#include "shim/base/attrs.h"

/* Looks up the vDSO; called once at boot. Without a vDSO the system calls stay in use. */
void tm_clock_init(void);

/* CLOCK_MONOTONIC_COARSE: the cheapest clock, with the scheduler tick's resolution (1 to 10 ms). */
uint64_t tm_clock_ms(void);

uint64_t tm_clock_ns(void);

/* Seconds since 1970. */
uint64_t tm_clock_wall_s(void);
uint64_t tm_clock_wall_ns(void);

#endif
