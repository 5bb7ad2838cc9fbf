/* SPDX-License-Identifier: MIT */
/* arena: what is dead in its blocks is little at any moment. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "shim/heap/arena.h"
#include "shim/thread.h"
#include "tests/unit/engine.h"

#define OBJECTS 4000u
#define SLACK_BYTES ((size_t)2 << 20)

static void *object[OBJECTS];

static void take(size_t bytes)
{
	struct tm_thread_heap held = tm_thread_enter();

	cr_assert_neq(held.hold, TM_THREAD_NONE);
	for (unsigned i = 0; i < OBJECTS; i++) {
		object[i] = tm_arena_take_asked(held.heap, bytes, (struct tm_site){0, 0});
		cr_assert_not_null(object[i]);
	}
	tm_thread_leave(held);
}

static size_t arena_bytes(void)
{
	size_t bytes = 0;

	for (size_t i = 0; i < tm_zone.len >> TM_GRANULE_SHIFT; i++)
		if (tm_granule_owner(&tm_zone.granules[i]) > TM_OWNER_BITS &&
		    tm_arena_is(&tm_zone.granules[i]))
			bytes += TM_GRANULE_BYTES;
	return bytes;
}

Test(arena, a_batch_leaves_little_when_it_is_freed)
{
	static const size_t sizes[] = {1100, 8192, 30000};

	need_engine();
	for (size_t k = 0; k < TM_ARRAY_LEN(sizes); k++) {
		take(sizes[k]);
		cr_assert_geq(arena_bytes(), OBJECTS * sizes[k]);
		/* nothing else is asked for that would look at what was freed */
		for (unsigned i = 0; i < OBJECTS; i++)
			tm_root.ops.free(object[(i * 37) % OBJECTS]);
		cr_assert_leq(arena_bytes(), SLACK_BYTES, "%zu of %zu", arena_bytes(), sizes[k]);
		/* and while half of it lives, not more than that is dead */
		take(sizes[k]);
		for (unsigned i = 0; i < OBJECTS / 2; i++)
			tm_root.ops.free(object[i]);
		cr_assert_leq(arena_bytes(), OBJECTS * sizes[k] * 5 / 8 + SLACK_BYTES);
		for (unsigned i = OBJECTS / 2; i < OBJECTS; i++)
			tm_root.ops.free(object[i]);
	}
}
