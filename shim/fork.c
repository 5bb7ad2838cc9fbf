/* SPDX-License-Identifier: MIT */
#include "shim/fork.h"

#include <errno.h>

#include "shim/base/attrs.h"
#include "shim/elf.h"
#include "shim/heap/account.h"
#include "shim/heap/arena.h"
#include "shim/heap/heap.h"
#include "shim/heap/inherit.h"
#include "shim/heap/remote.h"
#include "shim/helper.h"
#include "shim/ledger.h"
#include "shim/module.h"
#include "shim/os/lock.h"
#include "shim/thread.h"
#include "shim/trace.h"

/* Which library the handlers belong to: libc drops those of unloaded ones. */
extern void *__dso_handle __attribute__((visibility("hidden")));

/* [FORK: one fork at a time] False where the forking thread was interrupted inside an allocation. */
static bool locked TM_AT_START_DATA;

static TM_AT_START_CODE void prepare(void)
{
	/*
	 * A signal handler that forks in the middle of an allocation of its own thread must not wait
	 * for locks that this thread holds; its child is then like that of a raw fork.
	 */
	uintptr_t word = tm_heap_word;
	bool nested = !tm_heap_word_is_none(word) && (word & TM_HEAP_BUSY_BIT) != 0;

	if (nested)
		return;
	tm_lock_fork_acquire_all();
	tm_ledger_fork_prepare();
	locked = true;
}

static TM_AT_START_CODE void in_parent(void)
{
	if (!locked)
		return;
	locked = false;
	tm_ledger_fork_parent();
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

static TM_AT_START_CODE void in_child(void)
{
	uintptr_t word = tm_heap_word;
	struct tm_heap *mine = NULL;

	if (!tm_heap_word_is_none(word))
		mine = tm_heap_of_word(word);
	if (!locked)
		return;
	locked = false;
	bool counted = tm_ledger_is_on();
	tm_ledger_fork_child(TM_LEDGER_CHILD);
	tm_heap_each(begin_anew, &counted);
	if (mine != NULL)
		mine->tid = tm_thread_id();
	tm_lock_fork_reinit_all();
	tm_thread_fork_child();
	tm_heap_fork_child(mine);
	/* what it collects for heaps of vanished threads has to be known as free there, too */
	if (counted && mine != NULL)
		tm_remote_flush(mine);
	if (tm_module_cuda() != NULL)
		tm_module_cuda()->fork_child();
	tm_helper_fork_child();
	tm_trace_fork_child();
}

typedef int register_fn(void (*)(void), void (*)(void), void (*)(void), void *);

/* What pthread_atfork calls. Not a reference: a C library without it must still load us (H25). */
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
	if (register_atfork != NULL)
		register_atfork(prepare, in_parent, in_child, &__dso_handle);
}

int tm_fork_register(void (*before)(void), void (*parent)(void), void (*child)(void), void *dso)
{
	register_fn *register_atfork = next_register();

	return register_atfork != NULL ? register_atfork(before, parent, child, dso) : ENOSYS;
}
