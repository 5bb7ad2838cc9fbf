/* SPDX-License-Identifier: MIT */
/* routing: what one request counts of a large heap is bounded. */
#include <time.h>

#include "shim/heap/heap.h"
#include "shim/routing.h"
#include "tests/unit/engine.h"

#define BLOCKS 30000u
#define BLOCK_BYTES ((size_t)20000)
#define WATCHDOG_S 100

static void *block[BLOCKS];

static struct tm_heap *heap_of(const void *p)
{
	return (struct tm_heap *)(tm_granule_owner(tm_zone_granule(p)) & ~TM_OWNER_BITS);
}

/* Work of counting the spans before `end`, 0: all. UINT32_MAX: that span is gone. */
static uint32_t work_until(const struct tm_heap *h, uint32_t end)
{
	uint32_t at, n = 0;

	for (at = h->span_first; at != end && at != 0; at = tm_granule_at(at)->next)
		n += TM_ROUTING_SPAN_WORK + tm_granule_at(at)->carved;
	return at == end ? n : UINT32_MAX;
}

Test(routing, a_request_counts_a_bounded_number_of_objects)
{
	uint32_t most = TM_ROUTING_CENSUS_WORK + TM_ROUTING_SPAN_WORK + 64;
	time_t end = time(NULL) + WATCHDOG_S;
	uint32_t at, steps = 0;
	struct tm_heap *h;

	need_engine();
	for (unsigned i = 0; i < BLOCKS; i++)
		cr_assert_not_null(block[i] = tm_root.ops.malloc(BLOCK_BYTES));
	h = heap_of(block[0]);
	cr_assert_gt(work_until(h, 0), most);
	/* a census begins when an epoch does */
	for (unsigned i = 0; steps < 8; i = (i + 1) % BLOCKS) {
		cr_assert(time(NULL) < end, "no census within %d s", WATCHDOG_S);
		at = h->census_span;
		tm_root.ops.free(block[i]);
		cr_assert_not_null(block[i] = tm_root.ops.malloc(BLOCK_BYTES));
		if (at == h->census_span || work_until(h, at) == UINT32_MAX)
			continue;
		steps++;
		at = at == 0 ? 0 : work_until(h, at);
		cr_assert_leq(work_until(h, h->census_span) - at, most);
	}
}
