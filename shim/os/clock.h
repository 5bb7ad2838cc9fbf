/* SPDX-License-Identifier: MIT */
/*
 * clock: monotonic time. Any thread, any signal handler, before any constructor. Goes through the
 * vDSO once tm_clock_init found it (a few ns), by system call before (about 100 ns).
 */
#ifndef TM_OS_CLOCK_H
#define TM_OS_CLOCK_H

#include "shim/base/attrs.h"

/* Looks the kernel's vDSO up; called once at boot, harmless when it finds none. */
void tm_clock_init(void);

/* Resolution of the scheduler's tick (1 to 10 ms), the cheapest clock there is. */
uint64_t tm_clock_ms(void);

uint64_t tm_clock_ns(void);

/* Seconds since 1970. */
uint64_t tm_clock_wall_s(void);
uint64_t tm_clock_wall_ns(void);

#endif
