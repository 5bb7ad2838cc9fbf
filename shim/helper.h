/* SPDX-License-Identifier: MIT */
/*
 * helper: the thread that gives memory back while the program does something else, or nothing.
 *
 * It is started by the free that takes idle memory over a threshold, ticks ten times a second, and
 * ends when nothing is left to give back: no thread remains in an idle process. It is a raw clone, not
 * a pthread: libc must not notice it (stdio's putc gets slower for good once a process has had a
 * second pthread). So it calls no libc function. It has a thread control block of its own, all zero,
 * because that of the thread that started it would be unmapped under it when that thread ends.
 * All signals are blocked in it.
 *
 * Where there can be no thread (TIERMALLOC_THREAD=never, a seccomp filter, a refused clone) the
 * threads that free memory tick instead.
 *
 * Invariant: tid is 0 exactly while there is no helper thread; the kernel clears it when it is gone.
 */
#ifndef TM_HELPER_H
#define TM_HELPER_H

#include "shim/base/tunables.h"

/*
 * At boot. trim is called at every tick, with the time; it returns the bytes that it released to the
 * free memory; may be NULL.
 */
void tm_helper_init(enum tm_thread mode, size_t (*trim)(uint64_t now_ms));

/* Start the helper if there is none; not in a child that shares the memory. Off all locks; any thread. */
void tm_helper_kick(void);

/*
 * End it and wait until it is gone: before setuid and relatives (it would keep the old rights) and
 * before unshare and setns (they fail beside a second thread). The next free that needs it starts it.
 */
void tm_helper_stop(void);

/* End it, and never start it again: a system call filter is about to be installed. */
void tm_helper_forbid(void);

/* In the child of a fork: there is no helper; if there is work for one, it is started (H94). */
void tm_helper_fork_child(void);

/* Its stack and control block; both 0: there never was one. */
void tm_helper_memory(uintptr_t *ret_begin, uintptr_t *ret_end);

/*
 * Somebody may ask a ledger's process that does nothing: a helper stays, and looks four times a
 * second. For processes whose user asked for a ledger. Off all locks.
 */
void tm_helper_stay(void);

/* Thread id of the helper, 0: none. */
int tm_helper_tid(void);

#endif
