/* SPDX-License-Identifier: MIT */
/*
 * lock: futex-based mutexes. Owns the encoding of the lock word, the generation number of the
 * process image, and the list of locks that the fork handlers walk.
 *
 * A zeroed lock is free, so locks in .bss work before any constructor. No errno, no allocation, no
 * libc. A signal handler must not take a lock whose holder it may have interrupted.
 *
 * The word: bits 0..21 a mark of the holder, never 0 (derived from its TLS address: gettid would be
 * a system call that a seccomp filter may punish, H68); bits 22..30 the generation in which the
 * lock was taken; bit 31: there may be waiters. 0: free.
 *
 * Generation: _Fork and raw clone run no atfork handler (H46), so a child may find a lock held by a
 * thread that does not exist in it. The current generation is stored in a page with
 * MADV_WIPEONFORK, which the kernel zeroes in every child with memory of its own, but not where
 * memory is shared (vfork, threads). The first reader that finds 0 starts the next generation. The
 * holder of a lock word of another generation no longer exists: the lock is stolen, and
 * tm_lock_acquire returns TM_LOCK_STOLEN because the guarded data may be inconsistent. Without
 * MADV_WIPEONFORK (Linux before 4.14) locks are never stolen.
 */
#ifndef TM_OS_LOCK_H
#define TM_OS_LOCK_H

#include <stdatomic.h>

#include "shim/base/attrs.h"

enum tm_lock_rank {
#define X(rank, meaning) TM_RANK_##rank,
#include "shim/base/lock_ranks.def"
#undef X
	TM_RANK_COUNT
};

struct tm_lock {
	_Atomic uint32_t word; /* [atomic] */
	uint16_t depth;        /* [lock] nested acquisitions by the forking thread */
	uint8_t rank;          /* [const] enum tm_lock_rank */
	uint8_t registered;    /* [const] 1: on the list of its rank */
	struct tm_lock *next;  /* [const] next registered lock of the same rank */
};

#define TM_LOCK_INIT(r)                                                                            \
	{                                                                                          \
		.rank = (r)                                                                        \
	}

/* Result of tm_lock_acquire: the holder no longer exists; reinitialise the guarded structure. */
#define TM_LOCK_STOLEN 1

#define TM_LOCK_MARK_MASK ((uint32_t)0x3fffff)
#define TM_LOCK_GENERATION_SHIFT 22
#define TM_LOCK_GENERATION_MASK ((uint32_t)0x1ff)
#define TM_LOCK_WAITERS ((uint32_t)1 << 31)

/* Waits for the lock. 0 or TM_LOCK_STOLEN; the caller holds the lock in both cases. */
int tm_lock_acquire(struct tm_lock *lock);

/* False: it is held. Never sleeps, never steals; exempt from the rank order. */
bool tm_lock_try(struct tm_lock *lock);

/*
 * The same, but steals the lock if its holder no longer exists. Only for data that remains usable
 * in whatever state the holder left it.
 */
bool tm_lock_try_steal(struct tm_lock *lock);

void tm_lock_release(struct tm_lock *lock);

/* Whether the caller holds it. Marks are not unique: true may be wrong, false never is. */
bool tm_lock_is_mine(const struct tm_lock *lock);

/* Whether the caller holds any registered lock, with the same restriction. */
bool tm_lock_holds_any(void);

/*
 * The generation of this process image: 0 before tm_fork_generation_init, then 1, incremented in
 * each forked child, by whatever call it was forked. Costs two loads.
 */
uint32_t tm_fork_generation(void);

/* Maps the wiped page; called once at boot, while there is one thread. 0 or -errno. */
int tm_fork_generation_init(void);

/*
 * For the atfork handlers. tm_lock_register adds a lock to the walk for ever; locks of one rank are
 * taken in order of registration. Between acquire_all and one of the other calls the forking thread
 * may acquire registered locks again, recursively, because other libraries' handlers allocate
 * (H48). A raw thread that shares the forking thread's TLS must have been stopped before.
 */
void tm_lock_register(struct tm_lock *lock);
void tm_lock_fork_acquire_all(void);
void tm_lock_fork_release_all(void);
/* In the child, whose only thread is the caller: makes all registered locks free. */
void tm_lock_fork_reinit_all(void);
/*
 * In a child whose thread continues inside critical sections that it entered in the parent: moves
 * the locks it holds to the child's generation; locks of the parent's other threads can be stolen.
 */
void tm_lock_fork_keep_mine(void);

const char *tm_lock_rank_name(unsigned int rank);

#endif
