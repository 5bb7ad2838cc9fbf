/* SPDX-License-Identifier: MIT */
#include "shim/heap/limit.h"

#include <stdatomic.h>

#include "shim/heap/extent.h"
#include "shim/heap/grow.h"
#include "shim/heap/purge.h"
#include "shim/os/proc.h"

/* The limit is not read while the process is smaller than this. */
#define WORTH_BYTES ((size_t)8 << 20)
/* Memory is near the limit from 85 % of it on, and again after every further 2 %. */
#define NEAR_PERCENT 85u
#define STEP_PERCENT 2u

static _Atomic uint64_t limit_bytes; /* 0: not read yet; UINT64_MAX: none */
static _Atomic bool unfiltered; /* the kernel said that there is no filter, and none came since */
static _Atomic uint64_t next_bytes; /* held bytes from which memory is near the limit */

static uint64_t held_bytes(void)
{
	return tm_extent_used_bytes() + tm_grow_mapped() + tm_purge_retained() - tm_grow_retained();
}

static uint64_t read_limit(void)
{
	struct tm_proc_status status;
	uint64_t limit = UINT64_MAX, none = 0;

	if (tm_proc_status(&status) == 0 && status.seccomp == 0) {
		atomic_store_explicit(&unfiltered, true, memory_order_relaxed);
		limit = tm_proc_cgroup_limit();
	}
	if (limit > UINT64_MAX / 100)
		limit = UINT64_MAX;
	else
		atomic_store_explicit(&next_bytes, limit / 100 * NEAR_PERCENT,
				      memory_order_relaxed);
	atomic_compare_exchange_strong(&limit_bytes, &none, limit);
	return atomic_load_explicit(&limit_bytes, memory_order_relaxed);
}

bool tm_limit_is_near(size_t more_bytes)
{
	uint64_t limit = atomic_load_explicit(&limit_bytes, memory_order_relaxed);

	if (limit == UINT64_MAX)
		return false;
	uint64_t held = held_bytes() + more_bytes;
	if (limit == 0 && (held < WORTH_BYTES || read_limit() == UINT64_MAX))
		return false;
	return held > atomic_load_explicit(&next_bytes, memory_order_relaxed);
}

void tm_limit_settle(void)
{
	uint64_t limit = atomic_load_explicit(&limit_bytes, memory_order_relaxed);
	uint64_t again = held_bytes() + limit / 100 * STEP_PERCENT;

	if (again < limit / 100 * NEAR_PERCENT)
		again = limit / 100 * NEAR_PERCENT;
	atomic_store_explicit(&next_bytes, again, memory_order_relaxed);
}

bool tm_limit_may_look(void)
{
	return atomic_load_explicit(&unfiltered, memory_order_relaxed);
}

void tm_limit_read_nothing(void)
{
	uint64_t none = 0;

	atomic_store_explicit(&unfiltered, false, memory_order_relaxed);
	atomic_compare_exchange_strong(&limit_bytes, &none, UINT64_MAX);
}
