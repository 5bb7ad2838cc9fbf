/* SPDX-License-Identifier: MIT */
/* pool: fixed pools, on a kernel that can refuse. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/heap/pool_fill.h"
#include "shim/heap/tier.h"
#include "shim/os/proc.h"
#include "tests/unit/heap_fake.h"

#define SLOT_BYTES ((size_t)768 << 10)

static void fresh(void)
{
	heap_fresh();
	tm_pool_clear();
}

static struct tm_pool *make(size_t bytes, size_t count, bool fills)
{
	cr_assert_eq(tm_pool_make(&(struct tm_pool_wish){.bytes = bytes,
							 .count = count,
							 .tier = TM_TIER_SESSION,
							 .part = TM_PART_LARGE,
							 .fills = fills}),
		     0);
	return tm_pool_find(bytes, 0);
}

static void *take_as(struct tm_pool *pool, size_t align, enum tm_fill fill)
{
	struct tm_large_request r = {(size_t)pool->bytes, align, fill, TM_TIER_SESSION,
				     TM_PART_LARGE};
	enum tm_pool_answer answer;
	void *p = tm_pool_take(pool, &r, &answer);

	cr_assert_eq(p != NULL, answer == TM_POOL_HIT);
	return p;
}

static void *take(struct tm_pool *pool)
{
	return take_as(pool, 16, TM_FILL_ANY);
}

static int release(void *p)
{
	return tm_large_free(p, tm_zone_granule(p));
}

static void check(void)
{
	const char *broken = tm_pool_check();

	cr_assert(broken == NULL, "%s", broken);
	heap_check();
}

/* As the helper does. */
static void fill(void)
{
	while (tm_pool_fill_piece())
		;
}

Test(pool, first_request_fills_and_later_ones_call_nobody)
{
	struct tm_pool *pool;
	void *p[16];
	long calls;

	fresh();
	pool = make(SLOT_BYTES, 16, true);
	cr_assert_eq(kernel.populated_bytes, 0);
	p[0] = take(pool);
	cr_assert_eq(kernel.populated_bytes, 0);
	cr_assert_eq((uintptr_t)p[0] % TM_UNIT_BYTES, 0);
	fill();
	cr_assert_eq(kernel.populated_bytes, 16 * SLOT_BYTES);
	calls = kernel.calls;
	for (int i = 1; i < 16; i++) {
		p[i] = take(pool);
		cr_assert_eq((char *)p[i], (char *)p[i - 1] + SLOT_BYTES);
	}
	check();
	for (int i = 0; i < 16; i++)
		cr_assert_eq(release(p[i]), 0);
	cr_assert_eq(kernel.calls, calls);
	cr_assert_eq(pool->hits, 16);
	cr_assert_eq(pool->high_water, 16);
	check();
}

Test(pool, a_request_or_step_fills_a_bounded_part)
{
	for (int by_helper = 0; by_helper < 2; by_helper++) {
		size_t before = 0, limit = by_helper ? TM_UNIT_BYTES : TM_UNIT_BYTES / 4;
		struct tm_pool *pool;

		fresh();
		kernel.populated_bytes = 0;
		pool = make(5 * MIB, 16, true);
		for (int step = 0; step < 400 && (pool->left != 0 || step == 0); step++) {
			if (by_helper && step != 0)
				cr_assert(tm_pool_fill_piece());
			else
				cr_assert_eq(release(take(pool)), 0);
			cr_assert_leq(kernel.populated_bytes - before, limit);
			before = kernel.populated_bytes;
			check();
		}
		cr_assert_eq(pool->waiting, 0);
		cr_assert_eq(pool->left, 0);
		cr_assert_eq(pool->owned, 16);
		cr_assert(!tm_pool_fill_piece());
		cr_assert_eq(kernel.populated_bytes, 16 * 5 * MIB);
	}
}

Test(pool, requests_overtake_the_helper)
{
	struct tm_pool *pool;
	char *p[16];

	fresh();
	pool = make(5 * MIB, 16, true);
	for (int i = 0; i < 16; i++) {
		p[i] = take(pool);
		cr_assert_not_null(p[i]);
		memset(p[i], i, 5 * MIB);
		if (i < 12)
			cr_assert(tm_pool_fill_piece());
		for (int k = 0; k < i; k++)
			cr_assert_neq(p[k], p[i]);
		check();
	}
	cr_assert_eq(pool->exhausted + pool->misses, 0);
	cr_assert(take(pool) == NULL);
	for (int i = 0; i < 16; i++)
		for (size_t at = 0; at < 5 * MIB; at++)
			cr_assert_eq(p[i][at], i);
}

Test(pool, purges_leave_it_alone)
{
	struct tm_pool *pool;
	void *p;

	fresh();
	pool = make(SLOT_BYTES, 8, true);
	p = take(pool);
	cr_assert_eq(tm_pool_idle_bytes(TM_PART_LARGE), 7 * SLOT_BYTES);
	fill();
	cr_assert_eq(release(p), 0);
	tm_purge_now();
	for (size_t i = 0; i < SLOT_BYTES; i += TM_PAGE_BYTES)
		cr_assert_eq(((char *)p)[i], 0);
	cr_assert_eq(kernel.dontneed_bytes + pool->free * SLOT_BYTES, 8 * SLOT_BYTES);
	cr_assert_eq(tm_pool_idle_bytes(TM_PART_LARGE), 8 * SLOT_BYTES);
	check();
}

Test(pool, exhausted_pools_are_counted_and_recover)
{
	struct tm_pool *pool;
	void *p[2];

	fresh();
	pool = make(SLOT_BYTES, 2, true);
	p[0] = take(pool);
	p[1] = take(pool);
	cr_assert(take(pool) == NULL);
	cr_assert(take(pool) == NULL);
	cr_assert_eq(pool->exhausted, 2);
	cr_assert_eq(pool->misses, 0);
	cr_assert_eq(release(p[1]), 0);
	cr_assert_eq(take(pool), p[1]);
	cr_assert_eq(pool->hits, 3);
	cr_assert_eq(pool->in_use, 2);
	check();
}

Test(pool, wrong_frees_are_refused)
{
	struct tm_pool *pool;
	char *p;

	fresh();
	pool = make(SLOT_BYTES, 4, true);
	p = take(pool);
	cr_assert_eq(release(p + TM_PAGE_BYTES), -EINVAL);
	cr_assert_eq(release(p + TM_GRANULE_BYTES), -EINVAL);
	cr_assert_eq(release(p + SLOT_BYTES), -EINVAL);
	cr_assert_eq(release(p), 0);
	cr_assert_eq(release(p), -EINVAL);
	cr_assert_eq(pool->free + pool->waiting, 4);
	check();
}

Test(pool, resizing_stays_in_the_slot_while_it_fits)
{
	struct tm_pool *pool;
	char *p, *q;

	fresh();
	pool = make(SLOT_BYTES + 100, 4, true);
	p = take(pool);
	memset(p, 7, SLOT_BYTES + 100);
	cr_assert_eq(tm_large_usable(tm_zone_granule(p)), SLOT_BYTES + TM_PAGE_BYTES);
	cr_assert_eq(tm_large_resize(p, tm_zone_granule(p), 100000), p);
	cr_assert_eq(tm_large_resize(p, tm_zone_granule(p), SLOT_BYTES + 4000), p);
	q = tm_large_resize(p, tm_zone_granule(p), SLOT_BYTES + 4097);
	cr_assert(q != NULL && q != p);
	for (size_t i = 0; i < SLOT_BYTES + 100; i++)
		cr_assert_eq(q[i], 7);
	cr_assert_eq(pool->in_use, 0);
	q = tm_large_resize(q, tm_zone_granule(q), 9 * MIB);
	cr_assert(q != NULL && q[SLOT_BYTES] == 7);
	cr_assert_eq(release(q), 0);
	check();
}

Test(pool, growing_out_of_a_slot_leaves_its_pages)
{
	struct tm_pool *pool;
	char *p, *q;

	fresh();
	pool = make(8 * MIB, 2, true);
	p = take(pool);
	memset(p, 7, 8 * MIB);
	q = tm_large_resize(p, tm_zone_granule(p), 20 * MIB);
	cr_assert(q != NULL && q[8 * MIB - 1] == 7);
	cr_assert_eq(kernel.moved_bytes, 0);
	cr_assert_eq(p[8 * MIB - 1], 7);
	check();
}

Test(pool, zeroed_blocks_are_zero)
{
	struct tm_pool *pool;
	char *p;

	fresh();
	pool = make(SLOT_BYTES, 2, true);
	p = take(pool);
	memset(p, 7, SLOT_BYTES);
	release(p);
	p = take_as(pool, 16, TM_FILL_ZERO);
	for (size_t i = 0; i < SLOT_BYTES; i++)
		cr_assert_eq(p[i], 0);
}

Test(pool, alignments_beyond_a_slots_are_misses)
{
	struct tm_pool *pool;

	fresh();
	pool = make(SLOT_BYTES, 4, true);
	take(pool);
	cr_assert(take_as(pool, TM_UNIT_BYTES, TM_FILL_ANY) == NULL);
	cr_assert_eq(pool->misses, 1);
	cr_assert(take_as(pool, (size_t)256 << 10, TM_FILL_ANY) != NULL);
}

Test(pool, impossible_wishes_are_refused)
{
	struct tm_pool_wish wish = {.bytes = 65536, .count = 4, .part = TM_PART_LARGE, .rule = 1};

	fresh();
	cr_assert_eq(tm_pool_make(&wish), -EINVAL);
	wish.bytes = UINT64_MAX;
	cr_assert_eq(tm_pool_make(&wish), -EINVAL);
	wish.bytes = (uint64_t)1 << 39;
	cr_assert_eq(tm_pool_make(&wish), -EINVAL);
	wish = (struct tm_pool_wish){.bytes = 65537, .count = 1, .part = TM_PART_LARGE};
	cr_assert_eq(tm_pool_make(&wish), 0);
	cr_assert_eq(tm_pool_make(&wish), -EEXIST);
	for (unsigned i = 1; i < TM_POOLS_MAX; i++) {
		wish.bytes++;
		cr_assert_eq(tm_pool_make(&wish), 0);
	}
	wish.bytes++;
	cr_assert_eq(tm_pool_make(&wish), -ENOSPC);
	for (unsigned i = 0; i < TM_POOLS_MAX; i++)
		cr_assert_eq(tm_pool_find(65537 + i, 0), &tm_pools.pool[i]);
	cr_assert(tm_pool_find(65536, 0) == NULL);
}

/* Whatever call fails: what there is of memory serves, nothing breaks, and a later request tries again. */
Test(pool, each_refusal_of_the_kernel_leaves_order)
{
	for (int rest = 0; rest < 2; rest++) {
		for (long at = 1; at < 20; at++) {
			struct tm_pool *pool;
			void *p[8];
			int got = 0;

			fresh();
			pool = make(4 * MIB, 8, true);
			kernel.fail_at = at;
			kernel.fail_rest = rest;
			for (int i = 0; i < 8; i++) {
				p[got] = take(pool);
				got += p[got] != NULL;
			}
			check();
			kernel.fail_at = 0;
			for (int i = 0; i < 100 && got < 8; i++) {
				p[got] = take(pool);
				got += p[got] != NULL;
			}
			cr_assert_eq(got, 8, "call %ld refused: %d slots", at, got);
			for (int i = 0; i < 8; i++)
				cr_assert_eq(release(p[i]), 0);
			check();
		}
	}
}

static int no_populate(void *at, size_t bytes)
{
	(void)at;
	(void)bytes;
	return -EINVAL;
}

Test(pool, old_kernels_are_filled_by_hand)
{
	struct tm_zone_os os = fake_os;
	unsigned char resident[192];
	struct tm_pool *pool;
	char *p;

	fresh();
	os.populate = no_populate;
	tm_zone.os = &os;
	pool = make(SLOT_BYTES, 2, true);
	p = take(pool);
	fill();
	cr_assert_eq(mincore(p + SLOT_BYTES, SLOT_BYTES, resident), 0);
	for (size_t i = 0; i < sizeof(resident); i++)
		cr_assert(resident[i] & 1);
	tm_zone.os = &fake_os;
}

Test(pool, what_a_program_did_to_a_slot_ends_with_the_block)
{
	struct tm_pool *pool;
	char *p;

	fresh();
	pool = make(SLOT_BYTES, 2, true);
	p = take(pool);
	cr_assert_eq(mprotect(p, SLOT_BYTES, PROT_READ), 0);
	tm_zone_taint(p, SLOT_BYTES);
	cr_assert_eq(release(p), 0);
	cr_assert_eq(take(pool), p);
	memset(p, 1, SLOT_BYTES);
	check();
}

Test(pool, keeping_pools_hold_what_was_freed)
{
	struct tm_pool *pool;
	void *p[3];

	fresh();
	pool = make(SLOT_BYTES, 2, false);
	for (int i = 0; i < 3; i++) {
		cr_assert(take(pool) == NULL);
		p[i] = tm_large_alloc(SLOT_BYTES, 0, TM_FILL_ANY);
		tm_pool_adopt(pool, p[i]);
	}
	cr_assert_eq(pool->exhausted, 0);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(release(p[i]), 0);
	cr_assert_eq(pool->free, 2);
	cr_assert_eq(take(pool), p[1]);
	cr_assert_eq(take(pool), p[0]);
	cr_assert(take(pool) == NULL);
	check();
}

Test(pool, what_was_kept_goes_back_to_the_part_that_it_came_from)
{
	struct tm_pool *pool;
	void *p;

	fresh();
	pool = make(SLOT_BYTES, 1, false);
	p = tm_large_take(&(struct tm_large_request){SLOT_BYTES, 0, TM_FILL_ANY, TM_TIER_PERSISTENT,
						     TM_PART_PERSISTENT});
	tm_pool_adopt(pool, p);
	cr_assert_eq(release(p), 0);
	cr_assert_eq(take(pool), p);
	cr_assert_eq(tm_zone_granule(p)->large.part, TM_PART_PERSISTENT);
	check();
}

Test(pool, tiers_at_their_ceiling_get_nothing)
{
	uint64_t max[TM_TIER_COUNT] = {UINT64_MAX, UINT64_MAX, SLOT_BYTES + 1, UINT64_MAX};
	struct tm_pool *pool;

	fresh();
	tm_tier_configure(max);
	pool = make(SLOT_BYTES, 4, true);
	cr_assert(take(pool) != NULL);
	cr_assert(take(pool) == NULL);
	cr_assert_eq(pool->hits, 1);
	cr_assert_eq(pool->exhausted + pool->misses, 0);
}

/* --- threads and raw forks -------------------------------------------------------------------- */

#define THREADS 4
#define SLOTS 6

static void *churn(void *context)
{
	struct tm_pool *pool = context;
	uint64_t seed = (uint64_t)(uintptr_t)&seed | 1;
	char *mine[3] = {0};

	for (int i = 0; i < 20000; i++) {
		char **p = &mine[random_next(&seed) % 3];

		if (*p != NULL) {
			cr_assert_eq(**p, (char)(uintptr_t)&seed);
			cr_assert_eq(release(*p), 0);
			*p = NULL;
		} else if ((*p = take(pool)) != NULL) {
			**p = (char)(uintptr_t)&seed;
		}
	}
	for (int i = 0; i < 3; i++)
		if (mine[i] != NULL)
			cr_assert_eq(release(mine[i]), 0);
	return NULL;
}

Test(pool, threads_never_share_a_slot)
{
	pthread_t thread[THREADS];
	struct tm_pool *pool;

	fresh();
	pool = make(100000, SLOTS, true);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, churn, pool);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	cr_assert_eq(pool->free, SLOTS);
	check();
}

Test(pool, lock_of_a_vanished_thread_is_stolen_and_slots_found_again)
{
	struct tm_pool *pool;
	int status = 0;
	void *p;

	if (getenv("TM_EMULATED"))
		cr_skip_test("no page is wiped in a child under qemu-user");
	cr_assert_eq(tm_fork_generation_init(), 0);
	fresh();
	pool = make(SLOT_BYTES, 4, true);
	p = take(pool);
	cr_assert_eq(take(pool), (char *)p + SLOT_BYTES);
	/* half done: popped, not published */
	(void)tm_lock_acquire(&pool->lock);
	pool->free--;
	pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (child == 0) {
		int ok = release(p) == 0 && pool->free + pool->waiting == 3 && pool->in_use == 1 &&
			 tm_pool_check() == NULL && take(pool) == p;
		_exit(ok ? 0 : 1);
	}
	pool->free++;
	tm_lock_release(&pool->lock);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", (unsigned)status);
	check();
}

/* --- spans of slots --------------------------------------------------------------------------- */

#define SPAN_UNITS 3u

static struct tm_pool *make_small(size_t bytes, size_t count)
{
	cr_assert_eq(tm_pool_make(&(struct tm_pool_wish){.bytes = bytes,
							 .count = count,
							 .tier = TM_TIER_SESSION,
							 .part = TM_PART_LARGE,
							 .fills = true}),
		     0);
	return tm_pool_of_class(tm_class_of(bytes));
}

Test(pool, a_small_size_has_whole_spans)
{
	struct tm_pool_stats stats;
	struct tm_pool *pool;
	void *p[SPAN_UNITS];

	fresh();
	/* 64 slots of 1 KiB fill a granule */
	pool = make_small(1024, 129);
	cr_assert_eq(pool->count, 3);
	cr_assert_null(tm_pool_find(1024, 0));
	cr_assert_null(tm_pool_of_class(tm_class_of(2000)));
	for (unsigned i = 0; i < 3; i++) {
		p[i] = tm_pool_take_span(pool);
		cr_assert_not_null(p[i]);
		cr_assert_eq((uintptr_t)p[i] % TM_GRANULE_BYTES, 0);
		/* as a heap does */
		tm_zone_granule(p[i])->owner = 8192;
	}
	cr_assert_null(tm_pool_take_span(pool));
	check();
	cr_assert(tm_pool_stats(0, &stats));
	cr_assert_eq(stats.count, 192);
	cr_assert_eq(stats.in_use, 192);
	cr_assert_eq(stats.exhausted, 64);
	for (unsigned i = 0; i < 3; i++) {
		tm_zone_granule(p[i])->owner = TM_OWNER_NONE;
		cr_assert(tm_pool_give_span(pool, p[i]));
	}
	check();
	cr_assert_eq(tm_pool_take_span(pool), p[2]);
	tm_zone_granule(p[2])->owner = 8192;
	check();
}

Test(pool, spans_of_others_are_not_taken_in)
{
	struct tm_pool *pool;
	void *own, *other;

	fresh();
	pool = make_small(40000, 8);
	own = tm_pool_take_span(pool);
	cr_assert_not_null(own);
	other = tm_extent_take(TM_PART_SPAN, pool->slot_pages, TM_GRANULE_PAGES);
	cr_assert(!tm_pool_give_span(pool, other));
	tm_extent_give(TM_PART_SPAN, other, pool->slot_pages);
	cr_assert(tm_pool_give_span(pool, own));
	check();
}

Test(pool, one_class_has_one_pool)
{
	struct tm_pool_wish wish = {.bytes = 995, .count = 1, .part = TM_PART_LARGE, .fills = true};

	fresh();
	make_small(1000, 1);
	cr_assert_eq(tm_pool_make(&wish), -EEXIST);
	wish.bytes = 1;
	cr_assert_eq(tm_pool_make(&wish), 0);
	wish.bytes = 2000;
	wish.rule = 1;
	cr_assert_eq(tm_pool_make(&wish), -EINVAL);
}

static uint64_t filled;

static int count_populate(void *at, size_t bytes)
{
	(void)at;
	filled += bytes;
	return 0;
}

Test(pool, the_machine_is_not_filled_to_the_brim)
{
	struct tm_zone_os os = fake_os;
	struct tm_pool *pool;
	uint64_t memory = tm_proc_memory_bytes();

	fresh();
	if (memory > tm_zone.limit / 2)
		cr_skip_test("no pool may be as large as this machine's memory");
	os.populate = count_populate;
	tm_zone.os = &os;
	filled = 0;
	pool = make((size_t)64 << 20, (size_t)(memory >> 26), true);
	take(pool);
	fill();
	cr_assert(filled <= memory - memory / 8, "%zu of %zu", (size_t)filled, (size_t)memory);
	cr_assert(pool->owned < pool->count);
	tm_zone.os = &fake_os;
}
