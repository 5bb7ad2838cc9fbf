/* SPDX-License-Identifier: MIT */
/*
 * thread: creates and retires a thread's heap, and gives slow paths exclusive use of it.
 *
 * A thread gets a heap at its first slow path and gives it up in the last of libc's four rounds of
 * TSD destructors. After that its frees go to the owners' remote lists and its allocations to the
 * shared heap; the thread never gets another heap (H15). A thread that can't have a heap, since
 * there are TM_HEAP_LIMIT or no memory for one, uses the shared heap until it can.
 */
#ifndef TM_THREAD_H
#define TM_THREAD_H

#include "shim/base/attrs.h"
#include "shim/heap/heap.h"

enum tm_thread_hold {
	TM_THREAD_OWN,    /* the thread's own heap, marked busy */
	TM_THREAD_SHARED, /* the shared heap, locked: the thread has none of its own */
	TM_THREAD_NONE,   /* none: a signal handler interrupted a holder, or no memory for a heap */
};

struct tm_thread_heap {
	struct tm_heap *heap; /* NULL with TM_THREAD_NONE */
	enum tm_thread_hold hold;
};

/*
 * Holds a heap for the caller until tm_thread_leave; calls of libc that may allocate are forbidden
 * in between. With TM_THREAD_NONE only lock-free paths may be used (emergency.h, remote frees).
 */
struct tm_thread_heap tm_thread_enter(void);
void tm_thread_leave(struct tm_thread_heap held);

/*
 * Call it before reading a side entry without holding a heap: in the child of a raw fork, the side
 * entries are shared with the parent until this thread has entered its first slow path there.
 */
void tm_thread_arrive_slow(void);
TM_INLINE void tm_thread_arrive(void)
{
	/* the placeholder heap of a thread without a heap has a `self` too */
	if (TM_UNLIKELY(tm_heap_of_word(tm_heap_word)->self == 0))
		tm_thread_arrive_slow();
}

/*
 * Called when a thread whose heap is busy has used up its emergency memory. Either it is in a
 * signal handler that allocates much, or a handler left the allocator by siglongjmp and the heap
 * will be busy for ever. True: the thread has abandoned the heap as it is and gets another one. The
 * blocks in the old heap stay valid; memory freed in it is never reused. False: the thread holds a
 * lock, which the new heap might wait for, or uses the shared heap.
 */
bool tm_thread_desert(void);

/* In a forked child, by the fork handlers. */
void tm_thread_fork_child(void);

/*
 * Whether the calling thread is just getting its heap or uses the shared one, which its heap word
 * doesn't show.
 */
bool tm_thread_is_changing(void);

/* At boot. */
void tm_thread_init(void);

/*
 * Registers the TSD destructor and the fork handlers with libc. Called before main: if left to a
 * thread's first allocation, a signal handler that interrupts it and calls exit would wait for ever
 * for libc's lock.
 */
void tm_thread_libc_ready(void);

int32_t tm_thread_id(void);

/* The calling thread's own heap, or NULL; for the fork handlers. */
struct tm_heap *tm_thread_heap(void);

/*
 * In a forked child whose side entries were lost with its parent's ledger: marks the free slots of
 * g's class free again, before the state of one is judged (heap/inherit.h).
 */
void tm_thread_settle(struct tm_granule *g);

#endif
