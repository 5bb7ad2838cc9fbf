/* SPDX-License-Identifier: MIT */
#include "shim/thread.h"

#include <limits.h>
#include <pthread.h>

#include "shim/boot.h"
#include "shim/elf.h"
#include "shim/fork.h"
#include "shim/heap/inherit.h"
#include "shim/heap/remote.h"
#include "shim/heap/span.h"
#include "shim/heap/trim.h"
#include "shim/ledger/ledger.h"
#include "shim/os/lock.h"
#include "shim/os/sys.h"

enum thread_state { THREAD_NEW, THREAD_BIRTH, THREAD_LIVE, THREAD_DEAD };

/* The thread's state outside its heap, besides the heap word. */
static TM_TLS struct {
	uint8_t state;  /* enum thread_state */
	uint8_t rounds; /* rounds of TSD destructors so far */
	uint8_t shared; /* holds the shared heap or is retiring its own: a handler gets no heap */
	bool gave_up;   /* has abandoned a heap (tm_thread_desert) and may return into it */
} self;

static struct tm_lock shared_lock = TM_LOCK_INIT(TM_RANK_SHARED);
static pthread_key_t key;
static bool key_ready;
/*
 * libc's functions, found without dlsym; older releases have them in libpthread, if it is loaded.
 */
static int (*key_create)(pthread_key_t *key, void (*destructor)(void *));
static int (*set_specific)(pthread_key_t key, const void *value);

/* [const after boot] The thread that booted, the process's initial thread. */
static uintptr_t first_thread;
static bool tid_in_block;
/* The generation for which a forked child's initialisation is done. */
static uint32_t image;

#define THREAD_POINTER ((uintptr_t)__builtin_thread_pointer())
/* Offset of the thread id in the control block of glibc on x86-64; verified at boot. */
#define TID_OFFSET 0x2d0

/* Avoids the system call where possible: a seccomp filter may not allow it (H68). */
TM_AT_START_CODE int32_t tm_thread_id(void)
{
	if (tid_in_block)
		return *(const int32_t *)(THREAD_POINTER + TID_OFFSET);
	return (int32_t)tm_syscall6(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

/* Base address for this thread's stack heights. */
static uintptr_t stack_top(void)
{
	if (THREAD_POINTER == first_thread && tm_root.stack_end != 0)
		return tm_root.stack_end;
	/* libc places the thread control block at the top of the stack */
	return THREAD_POINTER;
}

static void thread_ended(void *heap)
{
	/* other destructors may still free: wait for the last of libc's rounds */
	if (++self.rounds < PTHREAD_DESTRUCTOR_ITERATIONS) {
		set_specific(key, heap);
		return;
	}
	struct tm_thread_heap held = tm_thread_enter();
	if (held.hold != TM_THREAD_OWN) {
		/* a handler left an allocation by siglongjmp: the heap may be inconsistent */
		tm_heap_forsake_all(&tm_heap_word, NULL);
		return;
	}
	if (self.gave_up)
		tm_heap_forsake_all(&tm_heap_word, held.heap);
	tm_remote_flush(held.heap);
	/*
	 * a signal handler that allocates must not wait for the lock that this thread takes below
	 */
	self.shared = 1;
	self.state = THREAD_DEAD;
	TM_SIGNAL_FENCE();
	tm_heap_word = tm_heap_word_none();
	tm_heap_orphan(held.heap);
	TM_SIGNAL_FENCE();
	self.shared = 0;
}

/*
 * Not at boot, since libpthread may be loaded later. If two threads race, one key is lost:
 * harmless.
 */
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
	/* from here on libc, which may allocate, may be called */
	tm_thread_libc_ready();
	if (key_ready)
		set_specific(key, h);
	return true;
}

/*
 * In the child of a fork without handlers while a ledger exists: the wiped heap has led the thread
 * here before it used memory shared with the parent. It starts with new heaps.
 */
static TM_COLD void after_raw_fork(void)
{
	image = tm_fork_generation();
	tm_ledger_fork_child(TM_LEDGER_CHILD_RAW);
	tm_heap_forget_all();
	tm_heap_word = tm_heap_word_none();
	if (self.state == THREAD_LIVE)
		self.state = THREAD_NEW;
}

/* For threads without a heap, whose wiping would show that this is a child of a raw fork. */
static TM_COLD void look_for_raw_fork(void)
{
	if (image == tm_fork_generation())
		return;
	if (tm_ledger_is_on())
		after_raw_fork();
	image = tm_fork_generation();
}

static bool is_wiped(uintptr_t word)
{
	return tm_heap_of_word(word)->self == 0;
}

/*
 * In the child of such a fork, the forking thread's heap may have been stolen by a thread that
 * doesn't exist here: it will never be returned, and its lists may be inconsistent.
 */
static TM_COLD void give_up_heap(struct tm_heap *h)
{
	atomic_store_explicit(&h->stolen, 0, memory_order_relaxed);
	TM_SIGNAL_FENCE();
	self.gave_up = true;
	tm_heap_forsake(h);
	tm_heap_word = tm_heap_word_none();
	self.state = THREAD_NEW;
}

/* Refused while the thread holds a lock: work in the new heap might wait for it. */
TM_COLD bool tm_thread_desert(void)
{
	uintptr_t word = tm_heap_word;
	struct tm_heap *h = tm_heap_of_word(word);

	if (self.shared != 0 || tm_lock_holds_any())
		return false;
	if (tm_heap_word_is_none(word)) {
		if (self.state != THREAD_BIRTH)
			return false;
		self.state = THREAD_NEW;
		return true;
	}
	if ((word & TM_HEAP_BUSY_BIT) == 0 ||
	    atomic_load_explicit(&h->stolen, memory_order_acquire) != 0)
		return false;
	give_up_heap(h);
	return true;
}

TM_COLD void tm_thread_arrive_slow(void)
{
	uintptr_t word = tm_heap_word;

	if (tm_heap_word_is_none(word))
		look_for_raw_fork();
	else if (is_wiped(word))
		after_raw_fork();
}

TM_AT_START_CODE bool tm_thread_is_changing(void)
{
	return self.state == THREAD_BIRTH || self.shared != 0;
}

TM_AT_START_CODE void tm_thread_fork_child(void)
{
	image = tm_fork_generation();
}

static struct tm_thread_heap enter_shared(void)
{
	if (self.shared != 0)
		return (struct tm_thread_heap){NULL, TM_THREAD_NONE};
	self.shared = 1;
	TM_SIGNAL_FENCE();
	/* created once, under the lock of all heaps */
	struct tm_heap *h = tm_heap_shared();
	if (h == NULL) {
		self.shared = 0;
		return (struct tm_thread_heap){NULL, TM_THREAD_NONE};
	}
	/* its holder may be gone (raw fork) and have left its lists inconsistent */
	while (tm_lock_acquire(&shared_lock) == TM_LOCK_STOLEN) {
		h = tm_heap_shared_anew();
		if (h != NULL)
			break;
		tm_lock_release(&shared_lock);
		self.shared = 0;
		return (struct tm_thread_heap){NULL, TM_THREAD_NONE};
	}
	return (struct tm_thread_heap){h, TM_THREAD_SHARED};
}

/*
 * Waits until the helper has returned the heap; the word may still say stolen after that (heap.h).
 */
static TM_COLD void wait_for_heap(uintptr_t word)
{
	struct tm_heap *h = tm_heap_of_word(word);

	if (!tm_trim_wait(h)) {
		give_up_heap(h);
		return;
	}
	/* a heap cannot be stolen by this word value, nor kept stolen while its owner runs */
	__atomic_compare_exchange_n(&tm_heap_word, &word, (uintptr_t)h, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_RELAXED);
}

static TM_NOINLINE struct tm_thread_heap enter_slow(void)
{
	/* the interrupted code may be using an abandoned heap, which the word doesn't show */
	if (TM_UNLIKELY(self.gave_up) && tm_lock_holds_any())
		return (struct tm_thread_heap){NULL, TM_THREAD_NONE};
	for (;;) {
		uintptr_t word = tm_heap_word;

		if (tm_heap_word_is_none(word)) {
			look_for_raw_fork();
			/* a handler that interrupts the use of the shared heap must take no lock */
			if (self.state == THREAD_DEAD || self.shared != 0)
				return enter_shared();
			if (birth())
				continue;
			/* no memory for a heap, or more threads than heaps: it shares one */
			if (self.state == THREAD_NEW)
				return enter_shared();
			return (struct tm_thread_heap){NULL, TM_THREAD_NONE};
		}
		if (TM_UNLIKELY(is_wiped(word))) {
			after_raw_fork();
			continue;
		}
		if ((word & TM_HEAP_BUSY_BIT) != 0)
			return (struct tm_thread_heap){NULL, TM_THREAD_NONE};
		if ((word & TM_HEAP_STOLEN_BIT) != 0) {
			wait_for_heap(word);
			continue;
		}
		tm_heap_word = word | TM_HEAP_BUSY;
		TM_SIGNAL_FENCE();
		return (struct tm_thread_heap){(struct tm_heap *)word, TM_THREAD_OWN};
	}
}

struct tm_thread_heap tm_thread_enter(void)
{
	uintptr_t word = tm_heap_word;

	/* the usual case: the thread has a heap that is not wiped, busy or stolen */
	if (TM_UNLIKELY(self.gave_up || (word & (TM_HEAP_BUSY_BIT | TM_HEAP_STOLEN_BIT)) != 0 ||
			((const struct tm_heap *)word)->self == 0))
		return enter_slow();
	tm_heap_word = word | TM_HEAP_BUSY;
	TM_SIGNAL_FENCE();
	return (struct tm_thread_heap){(struct tm_heap *)word, TM_THREAD_OWN};
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

TM_AT_START_CODE void tm_thread_init(void)
{
	tm_lock_register(&shared_lock);
	image = tm_fork_generation();
	first_thread = THREAD_POINTER;
#if defined(__x86_64__)
	tid_in_block = *(const int32_t *)(first_thread + TID_OFFSET) ==
		       (int32_t)tm_syscall6(SYS_gettid, 0, 0, 0, 0, 0, 0);
#endif
}

void tm_thread_settle(struct tm_granule *g)
{
	struct tm_heap *owner = (struct tm_heap *)(tm_granule_owner(g) & ~TM_OWNER_BITS);

	if (TM_LIKELY(!tm_inherit_lost) || !tm_inherit_is_open(owner))
		return;
	struct tm_thread_heap held = tm_thread_enter();
	tm_inherit_settle(owner, held.heap, tm_span_head(g)->klass);
	tm_thread_leave(held);
}

TM_AT_START_CODE struct tm_heap *tm_thread_heap(void)
{
	uintptr_t word = tm_heap_word;

	return tm_heap_word_is_none(word) ? NULL : tm_heap_of_word(word);
}
