/* SPDX-License-Identifier: MIT */
/* large: blocks above 64 KiB, their resizing and growth. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "shim/heap/huge.h"
#include "tests/unit/heap_fake.h"

static void *alloc(size_t bytes)
{
	return tm_large_alloc(bytes, 0, TM_FILL_ANY);
}

static int release(void *p)
{
	return tm_large_free(p, tm_zone_granule(p));
}

static void *resize(void *p, size_t bytes)
{
	return tm_large_resize(p, tm_zone_granule(p), bytes);
}

static enum tm_part part_of(const void *p)
{
	return (enum tm_part)tm_zone_granule(p)->large.part;
}

/* A word per page that says where it is, so that moves are seen. */
static void stamp(void *p, size_t bytes, uint64_t seed)
{
	for (size_t at = 0; at + 8 <= bytes; at += 4096)
		*(uint64_t *)((char *)p + at) = seed + at;
}

static void check_stamp(const void *p, size_t bytes, uint64_t seed)
{
	for (size_t at = 0; at + 8 <= bytes; at += 4096)
		cr_assert_eq(*(const uint64_t *)((const char *)p + at), seed + at);
}

Test(large, usable_size_is_the_request_in_pages)
{
	heap_fresh();
	for (size_t bytes = 65537; bytes < 10 * MIB; bytes += 77777) {
		void *p = alloc(bytes);
		size_t usable = tm_large_usable(tm_zone_granule(p));

		cr_assert(usable >= bytes && usable < bytes + TM_PAGE_BYTES);
		cr_assert(tm_large_starts_at(p, tm_zone_granule(p)));
	}
	heap_check();
}

Test(large, small_requests_with_large_alignment_get_granules_of_their_own)
{
	void *blocks[64];

	heap_fresh();
	for (int i = 0; i < 64; i++) {
		blocks[i] = tm_large_alloc(100, (size_t)128 << 10, TM_FILL_ANY);
		cr_assert_eq((uintptr_t)blocks[i] % ((size_t)128 << 10), 0);
	}
	for (int i = 0; i < 64; i++)
		cr_assert_eq(release(blocks[i]), 0);
	heap_check();
}

Test(large, wrong_frees_are_refused)
{
	char *p;

	heap_fresh();
	p = alloc(300000);
	cr_assert_eq(release(p + TM_PAGE_BYTES), -EINVAL);
	cr_assert_eq(release(p + 16), -EINVAL);
	cr_assert_eq(release(p + TM_GRANULE_BYTES), -EINVAL);
	cr_assert_eq(release(p), 0);
	cr_assert_eq(release(p), -EINVAL);
	cr_assert(resize(p, 100000) == NULL);
	heap_check();
}

Test(large, impossible_sizes_are_refused)
{
	void *p;

	heap_fresh();
	cr_assert(alloc(PTRDIFF_MAX) == NULL);
	cr_assert(alloc((size_t)PTRDIFF_MAX + 1) == NULL);
	cr_assert(alloc(SIZE_MAX) == NULL);
	cr_assert(tm_large_alloc(100000, (size_t)1 << 62, TM_FILL_ANY) == NULL);
	cr_assert(tm_large_alloc(100000, (size_t)1 << 63, TM_FILL_ANY) == NULL);
	p = alloc(100000);
	cr_assert(resize(p, SIZE_MAX) == NULL);
	cr_assert(resize(p, PTRDIFF_MAX) == NULL);
	cr_assert_eq(release(p), 0);
	heap_check();
}

Test(large, steady_churn_makes_no_system_call)
{
	void *blocks[20];
	long before = 0;

	heap_fresh();
	for (int round = 0; round < 50; round++) {
		if (round == 1)
			before = kernel.calls;
		for (int i = 0; i < 20; i++)
			blocks[i] = alloc((size_t)(i * 7 % 20 + 1) * 700000);
		for (int i = 0; i < 20; i++)
			cr_assert_eq(release(blocks[(i * 3 + round) % 20]), 0);
	}
	cr_assert_eq(kernel.calls, before);
	heap_check();
}

Test(large, shrinks_in_place_and_returns_the_tail)
{
	char *p, *q;

	heap_fresh();
	p = alloc(2 * MIB);
	stamp(p, 2 * MIB, 5);
	cr_assert_eq(resize(p, 200000), p);
	check_stamp(p, 200000, 5);
	cr_assert_lt(tm_large_usable(tm_zone_granule(p)), 210000);
	q = alloc(300000);
	cr_assert(q > p && q < p + 2 * MIB);
	heap_check();
}

Test(large, grows_in_place_where_the_neighbour_is_free)
{
	char *p;

	heap_fresh();
	p = alloc(200000);
	stamp(p, 200000, 9);
	cr_assert_eq(resize(p, 400000), p);
	check_stamp(p, 200000, 9);
	heap_check();
}

Test(large, grown_blocks_get_room_and_stay)
{
	char *fence, *p, *at;
	size_t bytes = 300000;

	heap_fresh();
	p = alloc(bytes);
	stamp(p, bytes, 1);
	fence = alloc(100000);
	at = p;
	for (int moves = 0; bytes < 7 * MIB; bytes += 256 << 10) {
		p = resize(p, bytes);
		cr_assert(p);
		check_stamp(p, 300000, 1);
		moves += p != at;
		at = p;
		cr_assert_leq(moves, 3);
		if (bytes == 300000)
			fence = alloc(100000);
	}
	cr_assert_eq(part_of(p), TM_PART_GROW);
	cr_assert_eq(release(p), 0);
	cr_assert_eq(release(fence), 0);
	heap_check();
}

static void *grown(size_t bytes, uint64_t seed)
{
	void *p = alloc(100000);
	void *fence = alloc(100000);
	void *q = resize(p, bytes);

	cr_assert_eq(part_of(q), TM_PART_GROW);
	cr_assert_eq(release(fence), 0);
	stamp(q, bytes, seed);
	return q;
}

/* Of the first unit of a block that grew so. */
static uint8_t stand_after(size_t from_bytes, size_t to_bytes)
{
	char *p = tm_large_alloc(from_bytes, 0, TM_FILL_ANY);

	/* so that it can't grow where it is */
	(void)tm_extent_take_at(TM_PART_LARGE, p + from_bytes, 16);
	p = tm_large_resize(p, tm_zone_granule(p), to_bytes);
	cr_assert_eq(tm_zone_granule(p)->large.part, TM_PART_GROW);
	return tm_zone_unit(tm_zone_page(p))->stand;
}

Test(large, a_block_that_doubled_to_half_a_unit_takes_no_huge_page)
{
	heap_fresh();
	tm_zone.huge = TM_THP_MADVISE;
	cr_assert(tm_large_alloc(40 * MIB, 0, TM_FILL_ANY));
	cr_assert_eq(stand_after(MIB / 2, MIB + 4096), TM_HUGE_SPARSE);
	cr_assert_eq(stand_after(MIB, 2 * MIB), TM_HUGE_ON_THP, "it is full soon");
	cr_assert_eq(stand_after(MIB / 4 * 3, MIB), TM_HUGE_ON_THP, "it grows by steps");
	cr_assert_eq(stand_after(MIB, 4 * MIB), TM_HUGE_ON_THP);
	heap_check();
}

Test(large, beyond_its_room_a_block_moves_with_its_pages)
{
	void *p;
	size_t bytes = 2 * MIB;

	heap_fresh();
	p = grown(bytes, 3);
	for (; bytes < 300 * MIB; bytes *= 2) {
		void *q = resize(p, bytes * 2);

		cr_assert(q);
		check_stamp(q, bytes, 3);
		stamp(q, bytes * 2, 3);
		p = q;
		heap_check();
	}
	p = resize(p, 100000);
	check_stamp(p, 100000, 3);
	cr_assert_eq(part_of(p), TM_PART_LARGE);
	cr_assert_eq(release(p), 0);
	heap_check();
}

Test(large, a_freed_range_serves_the_next_block_without_a_call)
{
	void *p, *q;
	long before = 0;

	heap_fresh();
	p = grown(20 * MIB, 1);
	cr_assert_eq(release(p), 0);
	q = alloc(100000);
	(void)alloc(100000);
	before = kernel.calls;
	q = resize(q, 15 * MIB);
	cr_assert_eq(q, p);
	cr_assert_eq(kernel.calls, before);
	heap_check();
}

Test(large, foreign_mappings_in_a_range_are_left_alone)
{
	char *p, *foreign;

	heap_fresh();
	p = grown(2 * MIB, 8);
	foreign = p + 4 * MIB;
	cr_assert_eq(tm_mem_map_at(foreign, TM_PAGE_BYTES, PROT_READ | PROT_WRITE), 0);
	*foreign = 77;
	p = resize(p, 10 * MIB);
	cr_assert(p);
	check_stamp(p, 2 * MIB, 8);
	stamp(p, 10 * MIB, 8);
	cr_assert_eq(*foreign, 77);
	cr_assert_eq(release(p), 0);
	/* nor does a later block of that range meet it */
	for (int i = 0; i < 6; i++)
		(void)grown(6 * MIB, (uint64_t)i);
	cr_assert_eq(*foreign, 77);
	tm_mem_unmap(foreign, TM_PAGE_BYTES);
}

Test(large, blocks_split_by_advice_grow_and_move)
{
	char *p;

	heap_fresh();
	p = grown(4 * MIB, 6);
	cr_assert_eq(madvise(p + MIB, MIB, MADV_DONTFORK), 0);
	tm_zone_taint(p + MIB, MIB);
	p = resize(p, 8 * MIB);
	check_stamp(p, 4 * MIB, 6);
	stamp(p, 8 * MIB, 6);
	p = resize(p, 200 * MIB);
	check_stamp(p, 8 * MIB, 6);
	cr_assert_eq(release(p), 0);
	heap_check();
}

Test(large, big_blocks_take_their_pages_along)
{
	char *p, *q, *fence;

	heap_fresh();
	(void)alloc(300000);
	p = alloc(50 * MIB);
	fence = alloc(100000);
	stamp(p, 50 * MIB, 4);
	q = resize(p, 80 * MIB);
	cr_assert_neq(p, q);
	cr_assert_eq(part_of(q), TM_PART_GROW);
	check_stamp(q, 50 * MIB, 4);
	cr_assert_eq(kernel.moved_bytes, 48 * MIB, "whole units were not copied");
	heap_check();
	/* what it left behind is zero, and known to be */
	p = tm_large_alloc(50 * MIB, 0, TM_FILL_ZERO);
	for (size_t at = 0; at < 50 * MIB; at += 512)
		cr_assert_eq(p[at], 0);
	q = resize(q, 90 * MIB);
	check_stamp(q, 50 * MIB, 4);
	q = resize(q, 1200 * MIB);
	check_stamp(q, 50 * MIB, 4);
	cr_assert_eq(release(q), 0);
	cr_assert_eq(release(p), 0);
	cr_assert_eq(release(fence), 0);
	heap_check();
}

struct block {
	char *p;
	size_t bytes;
	uint64_t seed;
};

static size_t random_bytes(uint64_t *rng)
{
	return 65537 + random_next(rng) % ((size_t)1 << (17 + random_next(rng) % 7));
}

/* As the requests of a program: a block that was given back last, else any. */
static char *again_or_new(size_t bytes, size_t align, enum tm_fill fill)
{
	struct tm_large_request r = {bytes, align, fill, TM_TIER_SESSION, TM_PART_LARGE};
	char *p = tm_large_take_again(&r);

	return p != NULL ? p : tm_large_take(&r);
}

static void random_step(struct block *b, uint64_t *rng, bool may_fail)
{
	size_t bytes = random_bytes(rng);

	if (b->p == NULL) {
		enum tm_fill fill = random_next(rng) % 2 ? TM_FILL_ZERO : TM_FILL_ANY;

		/* of few lengths, so that some are the same */
		if (random_next(rng) % 2)
			bytes = (bytes & ~(size_t)0x1ffff) + 65537;
		b->p = again_or_new(bytes, (size_t)1 << random_next(rng) % 23, fill);
		cr_assert(b->p || may_fail);
		if (b->p == NULL)
			return;
		if (fill == TM_FILL_ZERO)
			for (size_t at = 0; at < bytes; at += 512)
				cr_assert_eq(b->p[at], 0);
	} else if (random_next(rng) % 3) {
		char *q = resize(b->p, bytes);

		cr_assert(q || may_fail);
		if (q == NULL) {
			check_stamp(b->p, b->bytes, b->seed);
			return;
		}
		check_stamp(q, bytes < b->bytes ? bytes : b->bytes, b->seed);
		b->p = q;
	} else {
		check_stamp(b->p, b->bytes, b->seed);
		cr_assert_eq(release(b->p), 0);
		b->p = NULL;
		return;
	}
	b->bytes = bytes;
	b->seed = random_next(rng);
	stamp(b->p, bytes, b->seed);
}

Test(large, agrees_with_a_model_under_random_use)
{
	static struct block blocks[100];
	uint64_t rng = 7;
	uint64_t now = 1000;

	/* After MREMAP_DONTUNMAP, qemu-user says yes to MADV_DONTNEED and does nothing. */
	if (getenv("TM_EMULATED"))
		cr_skip_test("no page that was moved away is given back under qemu-user");
	heap_fresh();
	for (int i = 0; i < 6000; i++) {
		random_step(&blocks[random_next(&rng) % 100], &rng, false);
		if (i % 53 == 0)
			(void)tm_purge_tick(now += 100);
		if (i % 500 == 0)
			heap_check();
	}
	for (int i = 0; i < 100; i++)
		if (blocks[i].p)
			cr_assert_eq(release(blocks[i].p), 0);
	heap_check();
	cr_assert_eq(stats_of(TM_PART_LARGE).free_bytes, stats_of(TM_PART_LARGE).mapped_bytes);
	cr_assert_eq(tm_grow_retained(), tm_grow_mapped());
}

static _Atomic bool work_over;

static void *work(void *seed)
{
	struct block blocks[20] = {{0}};
	uint64_t rng = (uint64_t)(uintptr_t)seed * 0x9e3779b97f4a7c15u;

	for (int i = 0; i < 1500; i++)
		random_step(&blocks[random_next(&rng) % 20], &rng, false);
	for (int i = 0; i < 20; i++)
		if (blocks[i].p)
			cr_assert_eq(release(blocks[i].p), 0);
	return NULL;
}

static void *give_back_all_the_time(void *unused)
{
	uint64_t now = 1000;

	for (int i = 0; !work_over; i++) {
		(void)tm_purge_tick(now += 1000);
		if (i % 8 == 0)
			(void)tm_purge_now();
		sched_yield();
	}
	return unused;
}

Test(large, threads_share_it_with_one_that_gives_back)
{
	pthread_t workers[3], giver;

	/* After MREMAP_DONTUNMAP, qemu-user says yes to MADV_DONTNEED and does nothing. */
	if (getenv("TM_EMULATED"))
		cr_skip_test("no page that was moved away is given back under qemu-user");
	heap_fresh();
	tm_zone.os = &tm_zone_os_real;
	pthread_create(&giver, NULL, give_back_all_the_time, NULL);
	for (uintptr_t i = 0; i < 3; i++)
		pthread_create(&workers[i], NULL, work, (void *)(i + 1));
	for (int i = 0; i < 3; i++)
		pthread_join(workers[i], NULL);
	work_over = true;
	pthread_join(giver, NULL);
	heap_check();
	cr_assert_eq(stats_of(TM_PART_LARGE).free_bytes, stats_of(TM_PART_LARGE).mapped_bytes);
}

Test(large, survives_refusals_at_every_call)
{
	for (long n = 1; n < 60; n++) {
		struct block blocks[12] = {{0}};
		uint64_t rng = (uint64_t)n * 977;

		heap_fresh();
		kernel.fail_at = n;
		kernel.fail_rest = n % 3 == 0;
		for (int i = 0; i < 120; i++)
			random_step(&blocks[random_next(&rng) % 12], &rng, true);
		heap_check();
		kernel.fail_at = 0;
		for (int i = 0; i < 12; i++)
			if (blocks[i].p) {
				check_stamp(blocks[i].p, blocks[i].bytes, blocks[i].seed);
				cr_assert_eq(release(blocks[i].p), 0);
			}
		heap_check();
		cr_assert(alloc(200 * MIB));
	}
}
