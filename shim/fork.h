/* SPDX-License-Identifier: MIT */
/*
 * fork: the library's atfork handlers. _Fork and raw clone run no atfork handler: in their children
 * a lock detects that its holder no longer exists (os/lock.h), and the structure it guards is
 * reinitialised. Exception: if a signal handler that interrupted an allocation forks by any of the
 * three, the handlers are run, and the child may return into the allocation.
 */
#ifndef TM_FORK_H
#define TM_FORK_H

#include <stdint.h>

/*
 * Registers the handlers with libc, once; may allocate. libc runs child handlers in order of
 * registration and prepare handlers in reverse order. Ours must be registered first: a child
 * handler that ran before ours would write into the parent's ledger, and a prepare handler that ran
 * after ours would find our locks held.
 */
void tm_fork_init(void);

/*
 * Registers another library's handlers, with __register_atfork's arguments: 0 or an error number.
 */
int tm_fork_register(void (*before)(void), void (*parent)(void), void (*child)(void), void *dso);

/*
 * For the interposed syscall(number, a, b, ...): the function to jump to. `next`, libc's syscall,
 * or for a raw fork that needs the handlers a wrapper that runs them around the call.
 */
uintptr_t tm_fork_by_number(uintptr_t next, long number, long a, long b);

#endif
