/* SPDX-License-Identifier: MIT */
/* lifetime: see lifetime.h. */
#include "policies/lifetime.h"

/* Where nothing else says when a step ends: so many bytes of requests make one. */
#define EPOCH_BYTES (UINT64_C(16) << 20)

void tm_epoch_stream(struct tm_epoch *epoch, uint64_t born_bytes)
{
	uint64_t mark = atomic_load_explicit(&epoch->mark, memory_order_relaxed);

	if (born_bytes - mark < EPOCH_BYTES)
		return;
	if (atomic_compare_exchange_strong_explicit(&epoch->mark, &mark, born_bytes,
						    memory_order_relaxed, memory_order_relaxed))
		tm_epoch_raise(epoch);
}

void tm_epoch_raise(struct tm_epoch *epoch)
{
	atomic_fetch_add_explicit(&epoch->now, 1, memory_order_relaxed);
}
