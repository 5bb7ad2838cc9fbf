/* SPDX-License-Identifier: MIT */
/*
 * lock: mutual exclusion on a futex. Owns the lock words' meaning, the generation of the process
 * image and the table of locks that the fork handlers walk.
 *
 * A zeroed lock is free, so that locks in .bss work before any constructor. No errno, no allocation,
 * no libc. A lock may not be taken in a signal handler that may have interrupted its holder.
 *
 * The word: bits 0..21 the holder's mark, never 0 (from the address of its TLS: asking for the thread
 * id would be a system call that a seccomp filter may punish, H68); bits 22..30 the generation in which
 * it was taken; bit 31 somebody may sleep on it. 0 is free.
 *
 * Generation: _Fork and raw clone run no atfork handler (H46), so a child can find a lock held by a
 * thread that it does not have. The current generation lies in a page that the kernel wipes in every
 * child with its own memory and leaves alone where memory is shared (vfork, threads); the first who
 * reads 0 there starts the next generation. A word of another generation has no living holder: the
 * lock is stolen, and tm_lock_acquire says so, because what it guards may be half changed. Where
 * wiping is not to be had (Linux before 4.14), nothing is stolen.
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
	uint16_t depth;        /* [lock] how often the forking thread went through again */
	uint8_t rank;          /* [const] enum tm_lock_rank */
	uint8_t registered;    /* [const] on the list of its rank */
	struct tm_lock *next;  /* [const] next lock of the same rank in the fork walk */
};

#define TM_LOCK_INIT(r)                                                                            \
	{                                                                                          \
		.rank = (r)                                                                        \
	}

/* Result of tm_lock_acquire: the holder is gone; start the guarded structure afresh. */
#define TM_LOCK_STOLEN 1

#define TM_LOCK_MARK_MASK ((uint32_t)0x3fffff)
#define TM_LOCK_GENERATION_SHIFT 22
#define TM_LOCK_GENERATION_MASK ((uint32_t)0x1ff)
#define TM_LOCK_WAITERS ((uint32_t)1 << 31)

/* 0, or TM_LOCK_STOLEN. The lock is held in both cases. */
int tm_lock_acquire(struct tm_lock *lock);

/* False when somebody holds it. Never sleeps, never steals, and is exempt from the order of ranks. */
bool tm_lock_try(struct tm_lock *lock);

/* The same, but a lock whose holder is gone is taken: for what is fit to go on as it was left. */
bool tm_lock_try_steal(struct tm_lock *lock);

void tm_lock_release(struct tm_lock *lock);

/* For assertions: the mark is not unique, so that true may be wrong, never false. */
bool tm_lock_is_mine(const struct tm_lock *lock);

/* The same for all registered locks. */
bool tm_lock_holds_any(void);

/*
 * The generation of this process image: 0 before tm_fork_generation_init, then 1 and one more in
 * each forked child, however it was made. Costs two loads.
 */
uint32_t tm_fork_generation(void);

/* Maps the page that is wiped; called once at boot, while there is one thread. 0 or -errno. */
int tm_fork_generation_init(void);

/*
 * For pthread_atfork. A registered lock is in the walk for ever; locks of one rank are taken in the
 * order of registration. Between the first and one of the other calls, the forking thread passes
 * through all registered locks (other libraries' handlers allocate, H48). A raw thread that shares
 * the forking thread's TLS must have been stopped before.
 */
void tm_lock_register(struct tm_lock *lock);
void tm_lock_fork_acquire_all(void);
void tm_lock_fork_release_all(void);
/* In the child: all registered locks are free, the caller is the only thread. */
void tm_lock_fork_reinit_all(void);
/*
 * In a child whose thread goes on inside of sections that it began in its parent: the locks that it holds
 * are of this generation now; those of other threads are to be stolen.
 */
void tm_lock_fork_keep_mine(void);

const char *tm_lock_rank_name(unsigned int rank);

#endif
