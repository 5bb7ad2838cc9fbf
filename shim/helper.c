/* SPDX-License-Identifier: MIT */
#include "shim/helper.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>

#include "shim/base/bits.h"
#include "shim/heap/limit.h"
#include "shim/heap/pool_fill.h"
#include "shim/heap/purge.h"
#include "shim/os/clock.h"
#include "shim/os/lock.h"
#include "shim/os/mem.h"
#include "shim/os/proc.h"
#include "shim/os/sys.h"
#include "shim/thread.h"

#define STACK_BYTES ((size_t)64 << 10)
/*
 * Thread-local data lies below the control block on x86-64, above it on aarch64. Only touched pages
 * become resident; 512 KiB is more than a program's static thread-local storage.
 */
#define TLS_BYTES ((size_t)1 << 20)

/* Exits after this time with nothing to purge: heaps take a while to be recognised as idle. */
#define QUIET_TICKS 10u
#define STAY_TICK_MS 250

#define HELPER_CLONE_FLAGS                                                                         \
	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |        \
	 CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID)

#define PR_SET_NAME 15

long tm_helper_clone(unsigned long flags, void *stack_top, _Atomic uint32_t *parent_tid,
		     _Atomic uint32_t *child_tid, void *tls, void (*run)(void));

/* What the helper is told. An order given while it does not sleep stands until it would. */
enum order {
	ORDER_NONE,
	ORDER_HURRY, /* purge a surplus before the next tick */
	ORDER_STOP,
};

static struct {
	struct tm_lock lock; /* held to start and stop */
	_Atomic uint32_t tid;
	_Atomic uint32_t order; /* enum order */
	uint32_t generation;    /* [lock] of the image that started it */
	int32_t process;        /* [lock] process that owns that image; 0: unknown */
	int32_t leaving;        /* [lock] tid of the last one, until it has left the process; 0 */
	bool never;
	_Atomic uint32_t stay; /* 1: keeps running, to answer the command's requests */
	char *memory;          /* [lock] stack and control block; reused by the next helper */
	size_t tls_below;      /* bytes of `memory` below the thread pointer */
	size_t (*trim)(uint64_t now_ms);
} helper = {.lock = TM_LOCK_INIT(TM_RANK_HELPER)};

/* Sleep for a tick, or until there is an order. */
static void nap(uint32_t quiet)
{
	const struct timespec tick = {
		.tv_nsec = (quiet < QUIET_TICKS ? TM_PURGE_TICK_MS : STAY_TICK_MS) * 1000000L};
	uint32_t hurry = ORDER_HURRY;

	tm_sys_futex(&helper.order, FUTEX_WAIT_PRIVATE, ORDER_NONE, &tick);
	atomic_compare_exchange_strong(&helper.order, &hurry, ORDER_NONE);
}

/* Fill pools that requests have begun to use. */
static void fill(void)
{
	while (atomic_load_explicit(&helper.order, memory_order_relaxed) == ORDER_NONE &&
	       tm_pool_fill_piece())
		;
}

static void run(void)
{
	uint64_t ticked = 0;
	uint32_t quiet = 0;

	(void)tm_sys_prctl(PR_SET_NAME, (unsigned long)(uintptr_t) "tiermalloc", 0, 0);
	for (;;) {
		uint64_t now;
		size_t left;

		fill();
		nap(quiet);
		if (atomic_load_explicit(&helper.order, memory_order_acquire) == ORDER_STOP)
			break;
		tm_purge_surplus();
		now = tm_clock_ms();
		/* woken early */
		if (now - ticked < TM_PURGE_TICK_MS * 3 / 4)
			continue;
		ticked = now;
		left = tm_purge_tick(now);
		if (helper.trim)
			left += helper.trim(now);
		quiet = left ? 0 : quiet + 1;
		if (quiet < QUIET_TICKS ||
		    atomic_load_explicit(&helper.stay, memory_order_relaxed) != 0)
			continue;
		/* a free from here on starts the next helper; check for one just before */
		tm_purge_set_mode(TM_PURGE_WATCHED);
		if (tm_purge_retained() <= TM_PURGE_KICK_BYTES)
			return;
		tm_purge_set_mode(TM_PURGE_TICKING);
		quiet = 0;
	}
	tm_purge_set_mode(TM_PURGE_WATCHED);
}

/*
 * Static thread-local variables lie below the thread pointer, the program's first, libc's errno
 * farther down; the program's may be megabytes. A library that interposes madvise may use its own.
 */
static size_t tls_bytes_below(void)
{
	uintptr_t pointer = (uintptr_t)__builtin_thread_pointer();
	uintptr_t variable = (uintptr_t)&errno;
	size_t below = pointer > variable ? pointer - variable : 0;

	return (below + TLS_BYTES + TM_PAGE_BYTES - 1) & ~(TM_PAGE_BYTES - 1);
}

static char *thread_memory(void)
{
	size_t page = tm_proc_page_bytes();

	if (helper.memory == NULL) {
		size_t tls = tls_bytes_below();
		char *p = tm_mem_map(page + STACK_BYTES + tls + TLS_BYTES);

		if (p == NULL)
			return NULL;
		(void)tm_mem_protect(p, page, PROT_NONE);
		helper.tls_below = tls;
		helper.memory = p + page;
	}
	return helper.memory;
}

/* Waits for a helper that has announced its exit, which takes only a moment. */
static void wait_gone(void)
{
	const struct timespec limit = {.tv_nsec = 10000000L};
	uint32_t tid;

	while ((tid = atomic_load_explicit(&helper.tid, memory_order_acquire)) != 0)
		tm_sys_futex(&helper.tid, FUTEX_WAIT, tid,
			     &limit); /* the kernel wakes shared waiters */
}

/*
 * The kernel clears tid while the thread still counts as one of the process: unshare and setns are
 * refused a moment longer. A tid that stays belongs to another thread by now, which the bound is for.
 */
static void wait_left(void)
{
	const struct timespec moment = {.tv_nsec = 50000L};

	for (int i = 0; helper.leaving != 0 && i < 20000; i++) {
		if (tm_sys_tgkill(tm_sys_getpid(), helper.leaving, 0) != 0)
			break;
		tm_sys_futex(&helper.order, FUTEX_WAIT_PRIVATE, ORDER_STOP, &moment);
	}
	helper.leaving = 0;
}

static long start_thread(void)
{
	char *memory = thread_memory();
	const uint64_t all = UINT64_MAX;
	uint64_t old;
	void **tls;
	long tid;

	if (memory == NULL)
		return -ENOMEM;
	tls = (void **)(memory + STACK_BYTES + helper.tls_below);
	/* x86-64: %fs:0 and the thread's self pointer */
	tls[0] = tls;
	tls[2] = tls;
	(void)tm_sys_sigprocmask(0 /* SIG_BLOCK */, &all, &old);
	tid = tm_helper_clone(HELPER_CLONE_FLAGS, memory + STACK_BYTES, &helper.tid, &helper.tid,
			      tls, run);
	(void)tm_sys_sigprocmask(2 /* SIG_SETMASK */, &old, NULL);
	helper.leaving = tid > 0 ? (int32_t)tid : 0;
	return tid;
}

/* A seccomp filter may kill the process for clone (H68); checking costs 20 us per helper. */
static bool is_filtered(void)
{
	struct tm_proc_status status;

	return tm_proc_status(&status) != 0 || status.seccomp != 0;
}

static void forget_parents(void)
{
	if (helper.generation == tm_fork_generation())
		return;
	helper.generation = tm_fork_generation();
	helper.process = 0;
	helper.leaving = 0;
	atomic_store_explicit(&helper.tid, 0, memory_order_relaxed);
}

/*
 * A child that shares the memory (vfork) must not start a helper: as a thread of the child it would
 * be killed with it at any point, or keep the child alive while the parent waits. Checked only
 * without a seccomp filter, which may kill the process for the call (H68).
 */
static bool is_guest(void)
{
	int32_t process = tm_sys_getpid();

	if (helper.process == 0)
		helper.process = process;
	return process != helper.process;
}

static void kick_locked(void)
{
	forget_parents();
	/* state inherited by a raw fork */
	if (tm_purge_mode() == TM_PURGE_TICKING && tm_helper_tid() == 0)
		tm_purge_set_mode(TM_PURGE_WATCHED);
	if (tm_purge_mode() != TM_PURGE_WATCHED)
		return;
	wait_gone();
	if (helper.never || is_filtered()) {
		tm_purge_set_mode(TM_PURGE_BY_CALLERS);
		return;
	}
	if (is_guest())
		return;
	atomic_store_explicit(&helper.order, ORDER_NONE, memory_order_relaxed);
	tm_purge_set_mode(TM_PURGE_TICKING);
	if (start_thread() <= 0)
		tm_purge_set_mode(TM_PURGE_BY_CALLERS);
}

void tm_helper_kick(void)
{
	/* another thread is doing it */
	if (!tm_lock_try_steal(&helper.lock))
		return;
	kick_locked();
	tm_lock_release(&helper.lock);
}

/* Wakes the helper before its next tick. */
static void hurry(void)
{
	uint32_t none = ORDER_NONE;

	if (atomic_compare_exchange_strong(&helper.order, &none, ORDER_HURRY))
		tm_sys_futex(&helper.order, FUTEX_WAKE_PRIVATE, 1, NULL);
}

void tm_helper_stop(void)
{
	(void)tm_lock_acquire(&helper.lock);
	forget_parents();
	atomic_store_explicit(&helper.order, ORDER_STOP, memory_order_release);
	tm_sys_futex(&helper.order, FUTEX_WAKE_PRIVATE, 1, NULL);
	wait_gone();
	wait_left();
	tm_lock_release(&helper.lock);
}

void tm_helper_forbid(void)
{
	tm_helper_stop();
	(void)tm_lock_acquire(&helper.lock);
	helper.never = true;
	tm_lock_release(&helper.lock);
	tm_limit_read_nothing();
}

TM_AT_START_CODE void tm_helper_fork_child(void)
{
	(void)tm_lock_acquire(&helper.lock);
	helper.generation = tm_fork_generation();
	helper.process = tm_thread_id(); /* the only thread; no system call (filters) */
	helper.leaving = 0;
	atomic_store_explicit(&helper.tid, 0, memory_order_relaxed);
	if (tm_purge_mode() == TM_PURGE_TICKING)
		tm_purge_set_mode(TM_PURGE_WATCHED);
	atomic_store_explicit(&helper.stay, 0, memory_order_relaxed);
	if (tm_purge_mode() == TM_PURGE_WATCHED && tm_purge_retained() > TM_PURGE_KICK_BYTES)
		kick_locked();
	tm_lock_release(&helper.lock);
}

TM_AT_START_CODE void tm_helper_init(enum tm_thread mode, size_t (*trim)(uint64_t now_ms))
{
	helper.trim = trim;
	helper.never = mode == TM_THREAD_NEVER;
	helper.generation = tm_fork_generation();
	helper.process = tm_sys_getpid();
	tm_lock_register(&helper.lock);
	tm_purge_watch(tm_helper_kick, hurry);
}

void tm_helper_stay(void)
{
	if (helper.never || atomic_exchange_explicit(&helper.stay, 1, memory_order_relaxed) != 0)
		return;
	tm_helper_kick();
}

void tm_helper_memory(uintptr_t *ret_begin, uintptr_t *ret_end)
{
	*ret_begin = (uintptr_t)helper.memory;
	*ret_end =
		helper.memory == NULL ? 0 : *ret_begin + STACK_BYTES + helper.tls_below + TLS_BYTES;
}

int tm_helper_tid(void)
{
	return (int)atomic_load_explicit(&helper.tid, memory_order_relaxed);
}
