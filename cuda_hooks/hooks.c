/* SPDX-License-Identifier: MIT */
#include "cuda_hooks/hooks.h"

#include <stdatomic.h>

#include "cuda_hooks/driver.h"
#include "shim/boot.h"
#include "shim/os/lock.h"

TM_TLS struct tm_hooks_thread tm_hooks_thread;

static struct tm_lock lock = TM_LOCK_INIT(TM_RANK_CUDA);
/* Generation + 1 of the process image in which cuInit succeeded. */
static _Atomic uint32_t initialised;
static _Atomic uint32_t dead; /* 1: this process was forked after cuInit: CUDA does not work here */

/* Fork generation + 1 in which the hooks were found active; 0: not checked yet, or inactive. */
static _Atomic uint32_t serves;

/*
 * A raw fork's child may find the lock stolen from a vanished thread and the records half changed;
 * it is not served (is_dead), so that does not matter.
 */
void tm_hooks_lock(void)
{
	tm_lock_acquire(&lock);
}

bool tm_hooks_try(void)
{
	return tm_lock_try(&lock);
}

void tm_hooks_unlock(void)
{
	tm_lock_release(&lock);
}

TM_AT_START_CODE void tm_hooks_boot(void)
{
	tm_lock_register(&lock);
}

void tm_hooks_initialised(void)
{
	uint32_t none = 0;
	if (TM_LIKELY(atomic_load_explicit(&initialised, memory_order_relaxed) != 0))
		return;
	/*
	 * Before the driver is in use one thread initialises it; a fork at the same time is the
	 * program's bug.
	 */
	atomic_compare_exchange_strong(&initialised, &none, tm_fork_generation() + 1);
}

TM_AT_START_CODE bool tm_hooks_were_used(void)
{
	return atomic_load_explicit(&initialised, memory_order_relaxed) != 0 ||
	       atomic_load_explicit(&serves, memory_order_relaxed) != 0;
}

void tm_hooks_fork_child(void)
{
	if (atomic_load_explicit(&initialised, memory_order_relaxed) != 0)
		atomic_store_explicit(&dead, 1, memory_order_relaxed);
	atomic_store_explicit(&serves, 0, memory_order_relaxed);
}

static bool is_dead(void)
{
	uint32_t born = atomic_load_explicit(&initialised, memory_order_relaxed);
	return atomic_load_explicit(&dead, memory_order_relaxed) != 0 ||
	       (born != 0 && born != tm_fork_generation() + 1);
}

static TM_COLD bool may_serve(void)
{
	if (tm_root.options.cuda == TM_CUDA_OFF || tm_root.server != TM_SERVER_ENGINE || is_dead())
		return false;
	atomic_store_explicit(&serves, tm_fork_generation() + 1, memory_order_relaxed);
	return true;
}

/* Whether the handlers serve this call; records the caller. */
TM_INLINE bool enter(void *caller, void *frame)
{
	struct tm_hooks_thread *t = &tm_hooks_thread;
	if (TM_UNLIKELY(t->inside != 0))
		return false;
	if (TM_UNLIKELY(atomic_load_explicit(&serves, memory_order_relaxed) !=
			tm_fork_generation() + 1) &&
	    !may_serve())
		return false;
	if (t->tagged == 0) {
		t->site = (uintptr_t)caller;
		t->frame = (uintptr_t)frame;
	}
	return true;
}

static bool is_ready(void)
{
	return TM_LIKELY(tm_driver_is_bound()) || (tm_boot() && tm_driver_find());
}

/*
 * Calls from within these kinds are hooked, too: a look-up runs other libraries' code, which may do
 * look-ups of its own.
 */
#define NESTS_LOOKUP 0
#define NESTS_LIFE 0
#define NESTS_ALLOC 1
#define NESTS_FREE 1
#define NESTS_HOST_ALLOC 1
#define NESTS_HOST_FREE 1
#define NESTS_PIN 1
#define NESTS_UNPIN 1
#define NESTS_ASYNC_ALLOC 1
#define NESTS_ASYNC_FREE 1
#define NESTS_MANAGED 1
#define NESTS_ARRAY 1
#define NESTS_VMM 1
#define NESTS_IPC 1
#define NESTS_QUERY 1
#define NESTS_PEER 1
#define NESTS_CAPTURE 1

/* If the real function does not exist, the program could not have been linked against it. */
#define D(symbol, name, version, stream, kind, parameters, arguments)                              \
	TM_EXPORT tm_cu_result symbol parameters                                                   \
	{                                                                                          \
		tm_cu_result rc;                                                                   \
		if (!is_ready() || tm_driver.symbol == NULL)                                       \
			return TM_CU_NOT_INITIALIZED;                                              \
		if (!enter(__builtin_return_address(0), __builtin_dwarf_cfa()))                    \
			return tm_driver.symbol arguments;                                         \
		tm_hooks_thread.inside += NESTS_##kind;                                            \
		rc = tm_on_##symbol arguments;                                                     \
		tm_hooks_thread.inside -= NESTS_##kind;                                            \
		return rc;                                                                         \
	}
#include "shim/base/cuda_api.def"
