/* SPDX-License-Identifier: MIT */
/*
 * fork: the handlers that libc runs around fork. _Fork and raw clone run none: for them each lock
 * finds by itself that its holder is gone (os/lock.h), and what a lock guards starts afresh.
 */
#ifndef TM_FORK_H
#define TM_FORK_H

/* Registers the handlers once; may allocate. Early, so that other libraries' handlers run outside. */
void tm_fork_init(void);

#endif
