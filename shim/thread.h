/* SPDX-License-Identifier: MIT */
/*
 * thread: birth and death of a thread's heap, and getting hold of it in slow paths.
 *
 * A thread gets a heap at its first slow path. It gives it up in the last of libc's four rounds of
 * key destructors; what it still frees or allocates after that goes to the owners' remote lists and
 * to the shared heap, and no heap is born again (H15).
 */
#ifndef TM_THREAD_H
#define TM_THREAD_H

#include "shim/base/attrs.h"
#include "shim/heap/heap.h"

enum tm_thread_hold {
	TM_THREAD_OWN,    /* own heap, busy */
	TM_THREAD_SHARED, /* the shared heap, locked: the thread is past its end */
	TM_THREAD_NONE, /* no heap may be touched: nested in a signal handler, or no memory for one */
};

struct tm_thread_heap {
	struct tm_heap *heap; /* NULL with TM_THREAD_NONE */
	enum tm_thread_hold hold;
};

/*
 * Holds a heap for the caller until tm_thread_leave. Between the two, no call into libc that might
 * allocate. With TM_THREAD_NONE, only lock-free paths may be used (emergency.h, remote pushes).
 */
struct tm_thread_heap tm_thread_enter(void);
void tm_thread_leave(struct tm_thread_heap held);

/*
 * To be called before a side entry is read without a heap being held: in the child of a raw fork,
 * entries are the parent's too until this thread has taken its own.
 */
void tm_thread_arrive_slow(void);
TM_INLINE void tm_thread_arrive(void)
{
	/* also of a thread without a heap */
	if (TM_UNLIKELY(tm_heap_of_word(tm_heap_word)->self == 0))
		tm_thread_arrive_slow();
}

/*
 * There is no more for a thread whose heap is busy. That is a handler's that needs much, or it is of one
 * that never returned (siglongjmp): the heap will be busy for ever. True: the thread has given it up, as
 * it is, and gets another one. Its blocks stay; what is freed of them is not used again.
 */
bool tm_thread_desert(void);

/* For the fork handlers, in the child. */
void tm_thread_fork_child(void);

/* It gets its heap, gives it up or uses the shared one: its word says nothing of that. */
bool tm_thread_is_changing(void);

/* At boot. */
void tm_thread_init(void);

/*
 * Registers with libc what threads and forks need. The library calls it before main: a thread's first
 * allocation, which does it otherwise, may be interrupted by a signal handler that calls exit, and
 * that waits for libc's lock.
 */
void tm_thread_libc_ready(void);

int32_t tm_thread_id(void);

/* The calling thread's own heap if it has one; for the fork handlers. */
struct tm_heap *tm_thread_heap(void);

/* The same in the child of fork, for a slot of this span: whether it is free already (heap/inherit.h). */
void tm_thread_settle(struct tm_granule *g);

#endif
