/* SPDX-License-Identifier: MIT */
#include "shim/fork.h"

#include <pthread.h>

#include "shim/base/attrs.h"
#include "shim/heap/heap.h"
#include "shim/helper.h"
#include "shim/os/lock.h"
#include "shim/os/sys.h"

/* [FORK: one fork at a time] False where the forking thread was interrupted inside an allocation. */
static bool locked;

static void prepare(void)
{
	/*
	 * A signal handler that forks in the middle of an allocation of its own thread must not wait
	 * for locks that this thread holds; its child is then like that of a raw fork.
	 */
	uintptr_t word = tm_heap_word;
	bool nested = !tm_heap_word_is_none(word) && (word & TM_HEAP_BUSY) != 0;

	if (nested)
		return;
	tm_lock_fork_acquire_all();
	locked = true;
}

static void in_parent(void)
{
	if (!locked)
		return;
	locked = false;
	tm_lock_fork_release_all();
}

static void in_child(void)
{
	uintptr_t word = tm_heap_word;
	struct tm_heap *mine = NULL;

	if (!tm_heap_word_is_none(word))
		mine = (struct tm_heap *)(word & ~TM_HEAP_BUSY);
	if (mine != NULL)
		mine->tid = (int32_t)tm_syscall6(SYS_gettid, 0, 0, 0, 0, 0, 0);
	if (!locked)
		return;
	locked = false;
	tm_lock_fork_reinit_all();
	tm_heap_fork_child(mine);
	tm_helper_fork_child();
}

void tm_fork_init(void)
{
	static uint32_t done; /* [atomic] */

	if (__atomic_exchange_n(&done, 1, __ATOMIC_RELAXED) == 0)
		pthread_atfork(prepare, in_parent, in_child);
}
