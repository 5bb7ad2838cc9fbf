/* SPDX-License-Identifier: MIT */
/* stray: a request takes a bounded part of what an ended thread left, and no slot is lost or twice. */
#include <pthread.h>
#include <string.h>

#include "shim/heap/remote.h"
#include "shim/heap/span.h"
#include "shim/heap/stray.h"
#include "shim/heap/trim.h"
#include "shim/thread.h"
#include "tests/unit/engine.h"
#include "tests/unit/heap_fake.h"

#define SLOTS 200000u
#define SHUFFLED 20000u
#define LIVE 100u /* one of so many lives on */
#define BYTES ((size_t)64)
#define CHECK_EACH 5000u

static void *left[SLOTS], *slot[SLOTS];

static struct tm_heap *heap_of(const void *p)
{
	return (struct tm_heap *)(tm_granule_owner(tm_zone_granule(p)) & ~TM_OWNER_BITS);
}

static void *take(unsigned mark)
{
	unsigned *p = tm_root.ops.malloc(BYTES);

	cr_assert_not_null(p);
	for (unsigned i = 0; i < BYTES / sizeof(*p); i++)
		p[i] = mark;
	return p;
}

static void check_contents(const unsigned *p, unsigned mark)
{
	for (unsigned i = 0; i < BYTES / sizeof(*p); i++)
		cr_assert_eq(p[i], mark);
}

/* Frees all but one in LIVE, so that the slots of a span lie far from each other in the list. */
static void *leave_free_slots(void *arg)
{
	uint64_t state = 88172645463325252;

	for (unsigned i = 0; i < SLOTS; i++)
		left[i] = take(i);
	*(struct tm_heap **)arg = tm_thread_heap();
	for (size_t i = 0; i < SLOTS; i++) {
		size_t j = i / SHUFFLED * SHUFFLED + random_next(&state) % SHUFFLED;
		void *p = left[i];

		left[i] = left[j];
		left[j] = p;
	}
	for (unsigned i = 0; i < SLOTS; i++)
		if (i % LIVE != 0)
			tm_root.ops.free(left[i]);
	return NULL;
}

static struct tm_heap *make_orphan(void)
{
	struct tm_heap *h = NULL;
	pthread_t thread;

	need_engine();
	tm_root.ops.free(take(0));
	cr_assert_eq(pthread_create(&thread, NULL, leave_free_slots, &h), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_assert_neq(h, tm_thread_heap());
	return h;
}

static void check_left(void)
{
	for (unsigned i = 0; i < SLOTS; i += LIVE)
		check_contents(left[i], *(unsigned *)left[i]);
}

static void check_heap(const struct tm_heap *h)
{
	cr_assert_eq(tm_heap_check(h), 0, "line %d", tm_heap_check(h));
}

Test(stray, a_request_moves_a_bounded_number_of_spans)
{
	uint32_t work = TM_STRAY_WORK / (BYTES < 1024 ? TM_GRANULE_BYTES / BYTES / 16 : 1) + 1;
	struct tm_heap *orphan = make_orphan(), *mine = tm_thread_heap();
	uint32_t spans = orphan->span_count + mine->span_count;
	uint32_t all = orphan->span_count;

	cr_assert_gt(all, 2 * work);
	for (unsigned i = 0; i < SLOTS - SLOTS / LIVE; i++) {
		uint32_t before = mine->span_count;
		uint64_t looks = mine->trim_looks;

		slot[i] = take(i);
		cr_assert_leq(mine->span_count - before, work);
		cr_assert_leq(mine->trim_looks - looks, 2 * TM_STRAY_WORK);
		if (i % CHECK_EACH == 0) {
			check_heap(mine);
			check_heap(orphan);
		}
	}
	/* it had to take hardly any new memory, and all that the orphan had is its own now */
	cr_assert_leq(mine->span_count + orphan->span_count, spans + spans / 8);
	cr_assert_geq(mine->span_count, all);
	for (unsigned i = 0; i < SLOTS - SLOTS / LIVE; i++)
		check_contents(slot[i], i);
	check_left();
}

static void *take_the_rest(void *arg)
{
	struct tm_heap *h = *(struct tm_heap **)arg;
	unsigned taken = 0;

	/* this thread is the orphan's new owner */
	tm_root.ops.free(tm_root.ops.malloc(5000));
	cr_assert_eq(tm_thread_heap(), h);
	check_heap(h);
	for (unsigned i = SLOTS / 8; i < SLOTS / 2; i++) {
		slot[i] = take(i);
		taken += heap_of(slot[i]) == h;
		cr_assert(heap_of(slot[i]) == h);
		if (i % CHECK_EACH == 0)
			check_heap(h);
	}
	cr_assert_gt(taken, SLOTS / 4);
	return NULL;
}

Test(stray, a_thread_that_adopts_the_rest_gets_no_slot_of_a_span_that_left)
{
	struct tm_heap *orphan = make_orphan(), *mine = tm_thread_heap();
	pthread_t thread;

	for (unsigned i = 0; i < SLOTS / 8; i++)
		slot[i] = take(i);
	cr_assert(tm_look_has(orphan, tm_class_of(BYTES)));
	cr_assert_gt(orphan->span_count, 8);
	cr_assert_eq(pthread_create(&thread, NULL, take_the_rest, &orphan), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	/* what it found of spans that had left came back to their heap */
	for (unsigned i = SLOTS / 2; i < SLOTS - SLOTS / LIVE; i++)
		slot[i] = take(i);
	check_heap(mine);
	check_heap(orphan);
	for (unsigned i = 0; i < SLOTS - SLOTS / LIVE; i++)
		check_contents(slot[i], i);
	check_left();
}

Test(stray, a_trim_puts_all_strays_in_their_place)
{
	struct tm_heap *orphan = make_orphan(), *mine = tm_thread_heap();
	unsigned klass = tm_class_of(BYTES), n;

	for (n = 0; n < SLOTS / 8; n++)
		slot[n] = take(n);
	tm_trim_lock();
	(void)tm_trim_orphans();
	tm_trim_unlock();
	cr_assert_null(orphan->look->stray[klass]);
	check_heap(orphan);
	for (unsigned i = 0; i < n; i++) {
		check_contents(slot[i], i);
		tm_root.ops.free(slot[i]);
	}
	for (unsigned i = 0; i < SLOTS; i += LIVE)
		tm_root.ops.free(left[i]);
	tm_trim_lock();
	(void)tm_trim_heap(mine);
	(void)tm_trim_orphans();
	tm_trim_unlock();
	/* nothing is left but what was here before */
	cr_assert_leq(mine->span_count + orphan->span_count, 16);
	check_heap(mine);
	check_heap(orphan);
}

/* --- growth of another class ------------------------------------------------------------------ */

#define OTHER_BYTES ((size_t)208)
#define GROWN 60000u

static size_t length(const struct tm_slot *s)
{
	size_t n = 0;

	for (; s != NULL; s = s->next)
		n++;
	return n;
}

static size_t held(const struct tm_batch *b)
{
	size_t n = 0;

	for (; b != NULL; b = b->next)
		n += b->count;
	return n;
}

/* Slots that others freed and the heap has not linked. */
static size_t waiting(struct tm_heap *h)
{
	return length(h->remote) + length(h->remote_rest) + held(h->batches) +
	       held(h->batches_rest);
}

struct leave {
	size_t bytes;
	unsigned count;
	bool free; /* all but a few */
	struct tm_heap *heap;
};

static void *leave(void *arg)
{
	struct leave *l = arg;

	l->heap = tm_thread_heap();
	for (unsigned i = 0; i < l->count; i++)
		cr_assert_not_null(left[i] = tm_root.ops.malloc(l->bytes));
	l->heap = tm_thread_heap();
	for (unsigned i = 0; i < l->count && l->free; i++)
		if (i % LIVE != 0)
			tm_root.ops.free(left[i]);
	return NULL;
}

static struct tm_heap *leave_heap(size_t bytes, unsigned count, bool free)
{
	struct leave l = {.bytes = bytes, .count = count, .free = free};
	pthread_t thread;

	need_engine();
	tm_root.ops.free(take(0));
	cr_assert_eq(pthread_create(&thread, NULL, leave, &l), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	return l.heap;
}

Test(stray, growth_links_a_bounded_part_of_what_was_freed_into_orphans)
{
	struct tm_heap *orphan = leave_heap(BYTES, SLOTS, false);
	size_t before, now;

	for (unsigned i = 0; i < SLOTS; i++)
		if (i % LIVE != 0)
			tm_root.ops.free(left[i]);
	before = waiting(orphan);
	cr_assert_gt(before, 8 * TM_DRAIN_SLOTS, "%zu", before);
	for (unsigned i = 0; i < GROWN; i++) {
		uint32_t spans = tm_thread_heap()->span_count;

		cr_assert_not_null(tm_root.ops.malloc(OTHER_BYTES));
		if (tm_thread_heap()->span_count == spans && i % 100 != 0)
			continue;
		now = waiting(orphan);
		/* once for all orphans, and once by a look that begins */
		cr_assert_leq(before - now, 2 * (TM_DRAIN_SLOTS + TM_BATCH_SLOTS));
		before = now;
	}
	cr_assert_lt(before, 4 * TM_DRAIN_SLOTS);
	check_heap(orphan);
}

/* --- while the helper trims ------------------------------------------------------------------- */

static void *hold_for_long(void *arg)
{
	pthread_barrier_t *b = arg;

	tm_trim_lock();
	tm_heap_lock_long();
	pthread_barrier_wait(b);
	/* until the requests were served */
	pthread_barrier_wait(b);
	tm_heap_unlock_long();
	tm_trim_unlock();
	return NULL;
}

Test(stray, requests_do_not_wait_for_a_trim, .timeout = 60)
{
	struct tm_heap *orphan = leave_heap(BYTES, SLOTS, true), *mine = tm_thread_heap();
	uint32_t spans = mine->span_count, left_there = orphan->span_count;
	pthread_barrier_t b;
	pthread_t thread;

	pthread_barrier_init(&b, NULL, 2);
	cr_assert_eq(pthread_create(&thread, NULL, hold_for_long, &b), 0);
	pthread_barrier_wait(&b);
	left_there = orphan->span_count;
	spans = mine->span_count;
	for (unsigned i = 0; i < SLOTS / 4; i++)
		slot[i] = take(i);
	for (unsigned i = 0; i < GROWN; i++)
		cr_assert_not_null(tm_root.ops.malloc(OTHER_BYTES));
	cr_assert_gt(mine->span_count, spans);
	cr_assert_eq(orphan->span_count, left_there);
	pthread_barrier_wait(&b);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	/* afterwards they take what is there */
	for (unsigned i = SLOTS / 4; i < SLOTS; i++)
		slot[i] = take(i);
	cr_assert_lt(orphan->span_count, left_there);
	check_heap(mine);
	check_heap(orphan);
}
