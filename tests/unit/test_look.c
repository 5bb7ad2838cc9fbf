/* SPDX-License-Identifier: MIT */
/* look: what one call of the program examines is bounded, and nothing is lost meanwhile. */
#include <pthread.h>

#include "shim/heap/look.h"
#include "shim/heap/span.h"
#include "shim/heap/trim.h"
#include "tests/unit/engine.h"
#include "tests/unit/heap_fake.h"

#define SLOTS 200000u
#define SLOT_BYTES ((size_t)64)
#define OTHER_BYTES ((size_t)208)
#define CHECK_EACH 5000u

static void *slot[SLOTS];

static void shuffle(void **v, size_t n)
{
	uint64_t state = 88172645463325252;

	for (size_t i = n; i-- > 1;) {
		size_t j = random_next(&state) % (i + 1);
		void *p = v[i];

		v[i] = v[j];
		v[j] = p;
	}
}

static struct tm_heap *heap_of(const void *p)
{
	return (struct tm_heap *)(tm_granule_owner(tm_zone_granule(p)) & ~TM_OWNER_BITS);
}

static void *take(size_t bytes)
{
	void *p = tm_root.ops.malloc(bytes);

	cr_assert_not_null(p);
	memset(p, 0x5a, bytes);
	return p;
}

static void fill(void)
{
	need_engine();
	for (unsigned i = 0; i < SLOTS; i++)
		slot[i] = take(SLOT_BYTES);
	shuffle(slot, SLOTS);
}

static void add_looks(struct tm_heap *h, void *arg)
{
	*(uint64_t *)arg += h->trim_looks;
}

/* Slots examined in all heaps since the last call. */
static uint64_t looks(void)
{
	static uint64_t before;
	uint64_t sum = 0, then = before;

	tm_heap_each(add_looks, &sum);
	before = sum;
	return sum - then;
}

static unsigned spans_of(const struct tm_heap *h, unsigned klass)
{
	unsigned n = 0;

	for (struct tm_granule *g = tm_granule_at(h->span_first); g != NULL;
	     g = tm_granule_at(g->next))
		n += g->klass == klass;
	return n;
}

static void check(const struct tm_heap *h, unsigned i)
{
	if (i % CHECK_EACH == 0)
		cr_assert_eq(tm_heap_check(h), 0, "line %d", tm_heap_check(h));
}

Test(look, one_call_examines_a_bounded_number_of_slots)
{
	uint64_t most = 0, all = 0;
	struct tm_heap *h;
	unsigned spans;

	fill();
	h = heap_of(slot[0]);
	spans = spans_of(h, tm_class_of(SLOT_BYTES));
	cr_assert_gt(spans, SLOTS * SLOT_BYTES / TM_GRANULE_BYTES / 2);
	(void)looks();
	for (unsigned i = 0; i < SLOTS; i++) {
		tm_root.ops.free(slot[i]);
		all += most = looks();
		cr_assert_leq(most, TM_LOOK_WORK);
		check(h, i);
	}
	/* whoever grows finds them, and hardly takes anything new until they are found */
	for (unsigned i = 0; i < SLOTS; i++) {
		slot[i] = take(OTHER_BYTES);
		all += most = looks();
		cr_assert_leq(most, TM_LOOK_WORK);
		check(h, i);
	}
	cr_assert_geq(all, SLOTS);
	cr_assert_leq(spans_of(h, tm_class_of(SLOT_BYTES)), spans / 8);
	for (unsigned i = 0; i < SLOTS; i++)
		tm_root.ops.free(slot[i]);
	cr_assert_eq(tm_heap_check(h), 0);
}

Test(look, slots_that_it_has_taken_serve_before_the_heap_grows)
{
	struct tm_heap *h;
	unsigned spans;

	fill();
	h = heap_of(slot[0]);
	for (unsigned i = 0; i < SLOTS; i++)
		tm_root.ops.free(slot[i]);
	tm_look_end(h);
	tm_look_begin(h);
	for (unsigned i = 0; i < 8 && tm_look_is_on(h); i++)
		(void)tm_look_step(h);
	cr_assert(tm_look_is_on(h));
	cr_assert(tm_look_has(h, tm_class_of(SLOT_BYTES)));
	spans = spans_of(h, tm_class_of(SLOT_BYTES));
	cr_assert_gt(spans, 32);
	for (unsigned i = 0; i < spans * (TM_GRANULE_BYTES / SLOT_BYTES); i++) {
		cr_assert(i >= SLOTS || (slot[i] = take(SLOT_BYTES)) != NULL);
		check(h, i);
		if (i == SLOTS - 1)
			break;
	}
	cr_assert_leq(spans_of(h, tm_class_of(SLOT_BYTES)), spans + 1);
	for (unsigned i = 0; i < SLOTS; i++)
		for (size_t at = 0; at < SLOT_BYTES; at++)
			cr_assert_eq(((char *)slot[i])[at], 0x5a);
}

Test(look, a_trim_in_the_middle_of_one_loses_nothing)
{
	struct tm_heap *h;

	fill();
	h = heap_of(slot[0]);
	/* one in each span lives on, so that all marked slots must come back */
	for (unsigned i = 0; i < SLOTS - SLOTS / 64; i++)
		tm_root.ops.free(slot[i]);
	tm_span_keeps_entries = false; /* all spans are candidates */
	for (unsigned round = 1; round < 20; round++) {
		tm_look_begin(h);
		for (unsigned i = 0; i < round && tm_look_is_on(h); i++)
			(void)tm_look_step(h);
		cr_assert_eq(tm_look_check(h), 0);
		if (round % 4 == 0)
			(void)tm_trim_heap(h);
		else
			tm_look_end(h);
		cr_assert_eq(tm_look_check(h), 0);
	}
	tm_span_keeps_entries = true;
	cr_assert_eq(tm_heap_check(h), 0);
	for (unsigned i = 0; i < SLOTS - SLOTS / 64; i++)
		slot[i] = take(SLOT_BYTES);
	cr_assert_leq(spans_of(h, tm_class_of(SLOT_BYTES)),
		      SLOTS * SLOT_BYTES / TM_GRANULE_BYTES + 2);
}

static void *leave_free_slots(void *arg)
{
	void **mine = tm_root.ops.calloc(SLOTS, sizeof(*mine));

	(void)arg;
	for (unsigned i = 0; i < SLOTS; i++)
		mine[i] = take(SLOT_BYTES);
	shuffle(mine, SLOTS);
	for (unsigned i = 0; i < SLOTS; i++)
		tm_root.ops.free(mine[i]);
	tm_root.ops.free(mine);
	return NULL;
}

Test(look, heaps_of_ended_threads_are_examined_in_steps)
{
	uint64_t all = 0, most;
	pthread_t thread;

	need_engine();
	tm_root.ops.free(take(SLOT_BYTES));
	cr_assert_eq(pthread_create(&thread, NULL, leave_free_slots, NULL), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	(void)looks();
	for (unsigned i = 0; i < SLOTS; i++) {
		slot[i] = take(OTHER_BYTES);
		all += most = looks();
		cr_assert_leq(most, 2 * TM_LOOK_WORK);
	}
	cr_assert_gt(all, TM_LOOK_WORK);
	for (unsigned i = 0; i < SLOTS; i++) {
		tm_root.ops.free(slot[i]);
		cr_assert_leq(looks(), 2 * TM_LOOK_WORK);
	}
}

Test(look, parked_slots_are_found_without_a_walk_over_all_spans)
{
	unsigned klass = tm_class_of(SLOT_BYTES), n = 0;
	uint32_t spans;
	struct tm_heap *h;

	fill();
	h = heap_of(slot[0]);
	/* few live on, so that nearly all pages are given back */
	for (unsigned i = 0; i < SLOTS - 200; i++)
		tm_root.ops.free(slot[i]);
	tm_trim_lock();
	(void)tm_trim_heap(h);
	tm_trim_unlock();
	cr_assert_eq(tm_heap_check(h), 0);
	/* nothing to walk over */
	spans = h->span_first;
	h->span_first = 0;
	h->list[klass] = NULL;
	cr_assert(!tm_trim_unpark(h, tm_class_of(OTHER_BYTES)));
	while (tm_trim_unpark(h, klass)) {
		for (struct tm_slot *s = h->list[klass]; s != NULL; s = s->next)
			n++;
		cr_assert_lt(n, 2 * SLOTS);
		h->list[klass] = NULL;
	}
	h->span_first = spans;
	cr_assert_gt(n, SLOTS / 2);
}
