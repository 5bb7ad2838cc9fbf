/* SPDX-License-Identifier: MIT */
/*
 * helper: the background thread that purges free memory while the program computes or idles.
 *
 * A free that raises the idle memory above a threshold starts it. It ticks ten times a second and
 * exits once nothing is left to purge, so an idle process has no extra thread. It is made by raw
 * clone, not pthread_create, because libc must not notice it: stdio's putc gets permanently slower
 * once a process has had a second pthread. It therefore calls no libc function, and has an all-zero
 * thread control block of its own: that of the thread that started it is unmapped when that thread
 * ends. It blocks all signals.
 *
 * If there can be no helper (TIERMALLOC_THREAD=never, a seccomp filter, a refused clone), the
 * threads that free memory do the ticks.
 *
 * Invariant: tid is 0 exactly while there is no helper thread; the kernel clears it at its exit
 * (CLONE_CHILD_CLEARTID).
 */
#ifndef TM_HELPER_H
#define TM_HELPER_H

#include "shim/base/tunables.h"

/*
 * At boot. trim: called at every tick with the time; returns the bytes it moved from the heaps to
 * the parts' free memory; may be NULL.
 */
void tm_helper_init(enum tm_thread mode, size_t (*trim)(uint64_t now_ms));

/*
 * Starts the helper unless it runs; no effect in a child that shares the memory (vfork). The caller
 * holds no lock; any thread.
 */
void tm_helper_kick(void);

/*
 * Ends the helper and waits for its exit: before setuid and relatives (it would keep the old
 * credentials) and before unshare and setns (which fail in a process with a second thread). The
 * next free that needs it starts it again.
 */
void tm_helper_stop(void);

/* Ends the helper for good: a seccomp filter is about to be installed. */
void tm_helper_forbid(void);

/* In a forked child, which has no helper: starts one if there is memory to purge (H94). */
void tm_helper_fork_child(void);

/* The address range of its stack and thread control block; 0, 0: none was ever started. */
void tm_helper_memory(uintptr_t *ret_begin, uintptr_t *ret_end);

/*
 * Keeps a helper running that polls four times a second, so that the command's requests (ledger
 * header.control) are answered even by an idle process. For processes whose user asked for a
 * ledger. The caller holds no lock.
 */
void tm_helper_stay(void);

/* Thread id of the helper, 0: none. */
int tm_helper_tid(void);

#endif
