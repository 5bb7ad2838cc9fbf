/* SPDX-License-Identifier: MIT */
#include "shim/fork.h"

#include <errno.h>
#include <linux/sched.h>
#include <sys/syscall.h>
#include <sys/types.h>

#include "shim/base/attrs.h"
#include "shim/boot.h"
#include "shim/elf.h"
#include "shim/heap/account.h"
#include "shim/heap/arena.h"
#include "shim/heap/heap.h"
#include "shim/heap/inherit.h"
#include "shim/heap/remote.h"
#include "shim/helper.h"
#include "shim/ledger/ledger.h"
#include "shim/ledger/ledger_copy.h"
#include "shim/module.h"
#include "shim/os/lock.h"
#include "shim/thread.h"
#include "shim/trace.h"

/*
 * A signal handler may interrupt an allocation, fork, and return in the child, which then continues
 * the allocation. Such a fork must not wait for locks that its own thread holds, and the child must
 * not reinitialise anything: all state stays as it is, except for memory shared with the parent.
 *
 * The lock of forks is not registered for the walk: it is taken after all registered locks, and its
 * holder waits for no other lock.
 */
static struct {
	struct tm_lock lock;
	_Atomic uintptr_t thread; /* [lock] the forking thread; 0: none */
	unsigned depth; /* [lock] nested forks, by signal handlers that interrupted that fork */
	bool inside;    /* [lock] the fork is by a handler that interrupted an allocation */
	bool keeps;     /* [lock] the ledger's memory was copied for such a child */
} fork_now TM_AT_FORK_DATA = {.lock = TM_LOCK_INIT(TM_RANK_NONE)};

#define THIS_THREAD ((uintptr_t)__builtin_thread_pointer())

static TM_AT_START_CODE bool is_inside(void)
{
	uintptr_t word = tm_heap_word;

	return (!tm_heap_word_is_none(word) && (word & TM_HEAP_BUSY_BIT) != 0) ||
	       tm_thread_is_changing() || tm_lock_holds_any();
}

static void keep_ledger(void)
{
	fork_now.keeps = !tm_ledger_is_on() || tm_ledger_copy_take();
}

static TM_AT_START_CODE void prepare(void)
{
	if (fork_now.thread == THIS_THREAD ||
	    (fork_now.thread == 0 && tm_lock_is_mine(&fork_now.lock))) {
		if (fork_now.depth++ == 0 && !fork_now.inside)
			keep_ledger();
		return;
	}
	bool inside = is_inside();
	if (!inside)
		tm_lock_fork_acquire_all();
	if (tm_lock_acquire(&fork_now.lock) == TM_LOCK_STOLEN)
		fork_now.depth = 0;
	fork_now.thread = THIS_THREAD;
	fork_now.inside = inside;
	fork_now.keeps = true;
	if (inside)
		keep_ledger();
	if (fork_now.keeps)
		tm_ledger_fork_prepare();
}

static TM_AT_START_CODE void end_fork(void)
{
	if (fork_now.inside)
		tm_ledger_copy_drop();
	fork_now.thread = 0;
	tm_lock_release(&fork_now.lock);
}

static TM_AT_START_CODE void in_parent(void)
{
	if (fork_now.thread != THIS_THREAD)
		return;
	if (fork_now.depth > 0) {
		if (--fork_now.depth == 0 && !fork_now.inside)
			tm_ledger_copy_drop();
		return;
	}
	bool inside = fork_now.inside;
	if (fork_now.keeps)
		tm_ledger_fork_parent();
	end_fork();
	if (!inside)
		tm_lock_fork_release_all();
}

static TM_AT_START_CODE void begin_anew(struct tm_heap *h, void *counted)
{
	if (*(const bool *)counted) {
		tm_account_heap_clear(h);
		tm_inherit_begin(h);
	}
	tm_arena_fork_child(h,
			    *(const bool *)counted ? TM_ARENA_ENTRIES_LOST : TM_ARENA_ENTRIES_KEPT);
}

static void go_on_in_child(struct tm_heap *mine)
{
	tm_lock_fork_keep_mine();
	if (!fork_now.keeps)
		return;
	if (tm_ledger_is_on())
		tm_ledger_fork_inside();
	tm_thread_fork_child();
	if (mine != NULL)
		mine->tid = tm_thread_id();
}

static TM_AT_START_CODE void begin_child(struct tm_heap *mine)
{
	bool counted = tm_ledger_is_on();

	tm_ledger_fork_child(TM_LEDGER_CHILD);
	tm_heap_each(begin_anew, &counted);
	if (mine != NULL)
		mine->tid = tm_thread_id();
	tm_lock_fork_reinit_all();
	tm_thread_fork_child();
	tm_heap_fork_child(mine);
	/* slots it collects for heaps of threads that don't exist here must be marked free, too */
	if (counted && mine != NULL)
		tm_remote_flush(mine);
	if (tm_module_cuda() != NULL)
		tm_module_cuda()->fork_child();
	tm_helper_fork_child();
	tm_trace_fork_child();
}

static TM_AT_START_CODE void in_child(void)
{
	struct tm_heap *mine = tm_thread_heap();

	if (fork_now.thread != THIS_THREAD)
		return;
	if (fork_now.depth > 0) {
		go_on_in_child(mine);
		fork_now.depth--;
		return;
	}
	if (fork_now.inside)
		go_on_in_child(mine);
	end_fork();
	if (!fork_now.inside)
		begin_child(mine);
}

typedef int register_fn(void (*)(void), void (*)(void), void (*)(void), void *);

/* pthread_atfork calls this. Looked up at run time: a libc without it must still load us (H25). */
static register_fn *next_register(void)
{
	uintptr_t address = tm_elf_next("__register_atfork");
	register_fn *next = NULL;

	if (address != 0)
		TM_ELF_FUNCTION(address, &next);
	return next;
}

TM_AT_START_CODE void tm_fork_init(void)
{
	static uint32_t done; /* [atomic] */
	register_fn *register_atfork;

	if (__atomic_exchange_n(&done, 1, __ATOMIC_RELAXED) != 0)
		return;
	register_atfork = next_register();
	/* the last argument identifies the library in case it is unloaded; we never are */
	if (register_atfork != NULL)
		register_atfork(prepare, in_parent, in_child, &fork_now);
}

int tm_fork_register(void (*before)(void), void (*parent)(void), void (*child)(void), void *dso)
{
	register_fn *register_atfork = next_register();

	return register_atfork != NULL ? register_atfork(before, parent, child, dso) : ENOSYS;
}

/*
 * --- calls that run no handlers ----------------------------------------------------------------
 */

/*
 * Whether a raw fork needs the atfork handlers: if its child may continue an interrupted
 * allocation. Any other child detects by itself that it is new (os/lock.h).
 */
static bool needs_handlers(void)
{
	return tm_boot_is_ready() && tm_root.server == TM_SERVER_ENGINE && is_inside();
}

static long with_handlers(long result)
{
	if (result == 0)
		in_child();
	else
		in_parent();
	return result;
}

pid_t _Fork(void);

TM_EXPORT pid_t _Fork(void)
{
	static _Atomic uintptr_t known;
	pid_t (*next)(void);
	uintptr_t address = known;

	if (address == 0) {
		address = tm_elf_next("_Fork");
		known = address;
	}
	if (address == 0) {
		errno = ENOSYS;
		return -1;
	}
	TM_ELF_FUNCTION(address, &next);
	if (!needs_handlers())
		return next();
	prepare();
	return (pid_t)with_handlers(next());
}

static _Atomic uintptr_t next_syscall;

static long raw_fork(long number, long a, long b, long c, long d, long e)
{
	long (*next)(long, long, long, long, long, long);

	TM_ELF_FUNCTION(next_syscall, &next);
	prepare();
	return with_handlers(next(number, a, b, c, d, e));
}

/* Whether the call creates a child with its own memory and a copy of the stack, as fork does. */
static bool is_raw_fork(long number, long a, long b)
{
	switch (number) {
#ifdef SYS_fork
	case SYS_fork: return true;
#endif
	case SYS_clone: return (a & CLONE_VM) == 0 && b == 0;
	case SYS_clone3: {
		const struct clone_args *args = (const struct clone_args *)a;

		return b >= CLONE_ARGS_SIZE_VER0 && (args->flags & CLONE_VM) == 0 &&
		       args->stack == 0;
	}
	default: return false;
	}
}

uintptr_t tm_fork_by_number(uintptr_t next, long number, long a, long b)
{
	if (!is_raw_fork(number, a, b) || !needs_handlers())
		return next;
	next_syscall = next;
	return (uintptr_t)raw_fork;
}
