/* SPDX-License-Identifier: MIT */
/* remote: what other threads freed comes back in pieces, so that no request waits for all of it. */
#include <criterion/criterion.h>
#include <pthread.h>

#include "shim/heap/remote.h"
#include "shim/thread.h"
#include "tests/unit/engine.h"

/* More than the batches of one thread hold: the rest is handed over as chains. */
#define OBJECTS 200000u
#define BYTES 32u

static void *object[OBJECTS];

static void *free_all(void *unused)
{
	for (unsigned i = 0; i < OBJECTS; i++)
		tm_root.ops.free(object[i]);
	return unused;
}

static void free_elsewhere(void)
{
	pthread_t other;

	cr_assert_eq(pthread_create(&other, NULL, free_all, NULL), 0);
	cr_assert_eq(pthread_join(other, NULL), 0);
}

static size_t listed(const struct tm_heap *h)
{
	size_t n = 0;

	for (const struct tm_slot *s = h->list[tm_class_of(BYTES)]; s != NULL; s = s->next)
		n++;
	return n;
}

static void take_all(void)
{
	for (unsigned i = 0; i < OBJECTS; i++) {
		object[i] = tm_root.ops.malloc(BYTES);
		cr_assert_not_null(object[i]);
	}
}

Test(remote, a_request_links_some_of_what_waits)
{
	unsigned refills = 0;
	struct tm_heap *h;
	uint32_t spans;

	need_engine();
	take_all();
	h = tm_thread_heap();
	spans = h->span_count;
	free_elsewhere();
	for (unsigned i = 0; i < OBJECTS; i++) {
		bool dry = h->list[tm_class_of(BYTES)] == NULL;

		object[i] = tm_root.ops.malloc(BYTES);
		if (!dry)
			continue;
		refills++;
		cr_assert_leq(listed(h), TM_DRAIN_SLOTS + TM_BATCH_SLOTS);
	}
	cr_assert_geq(refills, OBJECTS / (TM_DRAIN_SLOTS + TM_BATCH_SLOTS));
	cr_assert_leq(h->span_count, spans + 1, "nothing is lost, so no memory is taken");
	cr_assert_eq(tm_heap_check(h), 0);
}

Test(remote, a_full_drain_takes_what_an_earlier_one_left)
{
	struct tm_heap *h;
	size_t n;

	need_engine();
	take_all();
	h = tm_thread_heap();
	free_elsewhere();
	n = tm_remote_drain_some(h);
	cr_assert(n >= TM_DRAIN_SLOTS && n < TM_DRAIN_SLOTS + TM_BATCH_SLOTS);
	cr_assert(tm_remote_waits(h));
	/* more than is left of the batches, less than all */
	while (n < OBJECTS / 2)
		n += tm_remote_drain_some(h);
	cr_assert_eq(n + tm_remote_drain(h), OBJECTS);
	cr_assert(!tm_remote_waits(h));
	cr_assert_eq(tm_remote_drain(h), 0);
	cr_assert_eq(tm_heap_check(h), 0);
}
