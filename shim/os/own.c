/* SPDX-License-Identifier: MIT */
#include "shim/os/own.h"

#include <stdatomic.h>

#include "shim/base/bits.h"

#define RECORDS 32u

static TM_AT_START_DATA struct {
	_Atomic uintptr_t start; /* 0: free */
	_Atomic uintptr_t end;   /* 0: being written */
} own[RECORDS];
static TM_AT_START_DATA _Atomic unsigned used; /* records from here on were never written */

static TM_AT_START_CODE bool becomes(_Atomic uintptr_t *word, uintptr_t from, uintptr_t to)
{
	return atomic_compare_exchange_strong_explicit(word, &from, to, memory_order_acq_rel,
						       memory_order_relaxed);
}

static TM_AT_START_CODE uintptr_t of(const _Atomic uintptr_t *word)
{
	return atomic_load_explicit(word, memory_order_acquire);
}

static TM_AT_START_CODE unsigned records(void)
{
	return atomic_load_explicit(&used, memory_order_acquire);
}

TM_AT_START_CODE void tm_own_add(uintptr_t start, size_t bytes)
{
	const uintptr_t end = start + bytes;

	for (unsigned i = 0; i < records(); i++)
		if (becomes(&own[i].start, end, start) || becomes(&own[i].end, start, end))
			return;
	for (unsigned i = 0; i < RECORDS; i++) {
		if (of(&own[i].start) != 0 || !becomes(&own[i].start, 0, start))
			continue;
		if (i >= records())
			atomic_store_explicit(&used, i + 1, memory_order_release);
		atomic_store_explicit(&own[i].end, end, memory_order_release);
		return;
	}
}

TM_AT_START_CODE void tm_own_drop(uintptr_t start, size_t bytes)
{
	const uintptr_t end = start + bytes;

	for (unsigned i = 0; i < records(); i++) {
		uintptr_t a = of(&own[i].start), b = of(&own[i].end);

		if (a == 0 || a >= end || b <= start)
			continue;
		if (a >= start && b <= end) {
			if (becomes(&own[i].end, b, 0))
				atomic_store_explicit(&own[i].start, 0, memory_order_release);
		} else if (a >= start) {
			(void)becomes(&own[i].start, a, end);
		} else if (becomes(&own[i].end, b, start) && b > end) {
			tm_own_add(end, b - end);
		}
	}
}

bool tm_own_next(uintptr_t *start, uintptr_t end, uintptr_t *ret_end)
{
	uintptr_t first = end;

	for (unsigned i = 0; i < records(); i++) {
		uintptr_t a = of(&own[i].start), b = of(&own[i].end);

		a = tm_bits_max(a, *start);
		if (of(&own[i].start) == 0 || a >= first || b <= a)
			continue;
		first = a;
		*ret_end = tm_bits_min(b, end);
	}
	*start = first;
	return first != end;
}
