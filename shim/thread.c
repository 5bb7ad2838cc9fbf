/* SPDX-License-Identifier: MIT */
#include "shim/thread.h"

#include <limits.h>
#include <pthread.h>

#include "shim/boot.h"
#include "shim/elf.h"
#include "shim/fork.h"
#include "shim/heap/remote.h"
#include "shim/heap/trim.h"
#include "shim/ledger.h"
#include "shim/os/lock.h"
#include "shim/os/sys.h"

enum thread_state { THREAD_NEW, THREAD_BIRTH, THREAD_LIVE, THREAD_DEAD };

/* Besides the heap word: all of a thread's state that is not in its heap. */
static TM_TLS struct {
	uint8_t state;  /* enum thread_state */
	uint8_t rounds; /* of key destructors seen */
	uint8_t shared; /* it holds the shared heap: a signal handler must not */
} self;

static struct tm_lock shared_lock = TM_LOCK_INIT(TM_RANK_SHARED);
static pthread_key_t key;
static bool key_ready;
/* libc's, found without dlsym: in libpthread of older releases, which may not be loaded. */
static int (*key_create)(pthread_key_t *key, void (*destructor)(void *));
static int (*set_specific)(pthread_key_t key, const void *value);

/* [const after boot] The thread that booted, which is the process's first. */
static uintptr_t first_thread;
static bool tid_in_block;

#define THREAD_POINTER ((uintptr_t)__builtin_thread_pointer())
/* Where glibc for x86-64 keeps a thread's id in its control block; checked at boot before use. */
#define TID_OFFSET 0x2d0

/* Without a system call where that can be: a filter may not have it (H68). */
int32_t tm_thread_id(void)
{
	if (tid_in_block)
		return *(const int32_t *)(THREAD_POINTER + TID_OFFSET);
	return (int32_t)tm_syscall6(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

/* Where the height of this thread's stack is counted from. */
static uintptr_t stack_top(void)
{
	if (THREAD_POINTER == first_thread && tm_root.stack_end != 0)
		return tm_root.stack_end;
	/* libc puts the thread's control block at the top of its stack. */
	return THREAD_POINTER;
}

static void thread_ended(void *heap)
{
	/* Other destructors may still free: be the last of the rounds that libc makes. */
	if (++self.rounds < PTHREAD_DESTRUCTOR_ITERATIONS) {
		set_specific(key, heap);
		return;
	}
	struct tm_thread_heap held = tm_thread_enter();
	if (held.hold != TM_THREAD_OWN)
		return;
	tm_remote_flush(held.heap);
	self.state = THREAD_DEAD;
	TM_SIGNAL_FENCE();
	tm_heap_word = tm_heap_word_none();
	tm_heap_orphan(held.heap);
}

/* Late, since libpthread may come late; harmless when two threads do it at once but for a lost key. */
static void make_key(void)
{
	uintptr_t create = tm_elf_next("pthread_key_create");
	uintptr_t set = tm_elf_next("pthread_setspecific");

	if (create == 0 || set == 0)
		return;
	TM_ELF_FUNCTION(create, &key_create);
	TM_ELF_FUNCTION(set, &set_specific);
	__atomic_store_n(&key_ready, key_create(&key, thread_ended) == 0, __ATOMIC_RELEASE);
}

void tm_thread_libc_ready(void)
{
	tm_fork_init();
	if (!__atomic_load_n(&key_ready, __ATOMIC_ACQUIRE))
		make_key();
}

static bool birth(void)
{
	struct tm_heap *h;

	if (self.state != THREAD_NEW)
		return false;
	self.state = THREAD_BIRTH;
	TM_SIGNAL_FENCE();
	h = tm_heap_adopt(&tm_heap_word, tm_thread_id(), stack_top());
	if (h == NULL) {
		self.state = THREAD_NEW;
		return false;
	}
	tm_heap_word = (uintptr_t)h;
	TM_SIGNAL_FENCE();
	self.state = THREAD_LIVE;
	/* From here on libc may be called, and may allocate. */
	tm_thread_libc_ready();
	if (key_ready)
		set_specific(key, h);
	return true;
}

static struct tm_thread_heap enter_shared(void)
{
	if (self.shared != 0)
		return (struct tm_thread_heap){NULL, TM_THREAD_NONE};
	self.shared = 1;
	TM_SIGNAL_FENCE();
	/* Made once, under the lock of all heaps. */
	struct tm_heap *h = tm_heap_shared();
	if (h == NULL) {
		self.shared = 0;
		return (struct tm_thread_heap){NULL, TM_THREAD_NONE};
	}
	tm_lock_acquire(&shared_lock);
	return (struct tm_thread_heap){h, TM_THREAD_SHARED};
}

/*
 * The child of a fork that ran no handler, while a ledger was shared: its heaps were wiped so that it
 * came here before it wrote into its parent's file. It starts with new heaps.
 */
static TM_COLD void after_raw_fork(void)
{
	tm_ledger_fork_child(TM_LEDGER_CHILD_RAW);
	tm_heap_forget_all();
	tm_heap_word = tm_heap_word_none();
	self.state = THREAD_NEW;
}

struct tm_thread_heap tm_thread_enter(void)
{
	for (;;) {
		uintptr_t word = tm_heap_word;

		if (tm_heap_word_is_none(word)) {
			if (self.state == THREAD_DEAD)
				return enter_shared();
			if (!birth())
				return (struct tm_thread_heap){NULL, TM_THREAD_NONE};
			continue;
		}
		if ((word & TM_HEAP_BUSY) != 0) {
			struct tm_heap *h = (struct tm_heap *)(word & ~TM_HEAP_BUSY);

			if (atomic_load_explicit(&h->stolen, memory_order_acquire) == 0 &&
			    (tm_heap_word & TM_HEAP_BUSY) != 0)
				return (struct tm_thread_heap){NULL, TM_THREAD_NONE};
			tm_trim_wait(h);
			continue;
		}
		if (TM_UNLIKELY(((struct tm_heap *)word)->self == 0)) {
			after_raw_fork();
			continue;
		}
		tm_heap_word = word | TM_HEAP_BUSY;
		TM_SIGNAL_FENCE();
		return (struct tm_thread_heap){(struct tm_heap *)word, TM_THREAD_OWN};
	}
}

void tm_thread_leave(struct tm_thread_heap held)
{
	TM_SIGNAL_FENCE();
	if (held.hold == TM_THREAD_OWN) {
		tm_heap_word = (uintptr_t)held.heap;
	} else if (held.hold == TM_THREAD_SHARED) {
		tm_lock_release(&shared_lock);
		TM_SIGNAL_FENCE();
		self.shared = 0;
	}
}

void tm_thread_init(void)
{
	tm_lock_register(&shared_lock);
	first_thread = THREAD_POINTER;
#if defined(__x86_64__)
	tid_in_block = *(const int32_t *)(first_thread + TID_OFFSET) ==
		       (int32_t)tm_syscall6(SYS_gettid, 0, 0, 0, 0, 0, 0);
#endif
}

struct tm_heap *tm_thread_heap(void)
{
	uintptr_t word = tm_heap_word;

	return tm_heap_word_is_none(word) ? NULL : (struct tm_heap *)(word & ~TM_HEAP_BUSY);
}
