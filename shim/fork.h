/* SPDX-License-Identifier: MIT */
/*
 * fork: the handlers that libc runs around fork. _Fork and raw clone run none: for them each lock
 * finds by itself that its holder is gone (os/lock.h), and what a lock guards starts afresh. Where a
 * signal handler makes a child in the middle of an allocation, all three get the handlers, and the child
 * may return there.
 */
#ifndef TM_FORK_H
#define TM_FORK_H

#include <stdint.h>

/*
 * Registers the handlers once; may allocate. libc runs the handlers of a child in the order of
 * registration, and those before a fork in the other one. Ours must be the first: a handler that ran
 * before it in the child would write into the ledger that is still the parent's, and one that ran after
 * it before the fork would meet our locks.
 */
void tm_fork_init(void);

/* Somebody else's, as libc's __register_atfork takes them: 0 or an error number. */
int tm_fork_register(void (*before)(void), void (*parent)(void), void (*child)(void), void *dso);

/* syscall(number, a, b, ...) is to go to the next definition: which function is to be called in its place. */
uintptr_t tm_fork_by_number(uintptr_t next, long number, long a, long b);

#endif
