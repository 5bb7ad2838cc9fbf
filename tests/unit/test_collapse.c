/* SPDX-License-Identifier: MIT */
/* collapse: huge pages for what was written on small ones; settle: who asks for them. */
#include <criterion/criterion.h>
#include <unistd.h>

#include "shim/heap/collapse.h"
#include "shim/heap/huge.h"
#include "shim/heap/limit.h"
#include "shim/heap/part.h"
#include "tests/unit/heap_fake.h"

#define BLOCK (16 * MIB) /* below what gets huge pages at once */
#define QUIET 12         /* ticks */

static struct tm_zone_os os_that_collapses;
static size_t collapsed;
static int refusal;
static long calls;

static bool declined; /* the kernel wants the advice first */

static int fake_collapse(void *at, size_t bytes)
{
	calls++;
	if (declined && !(tm_zone_unit(tm_zone_page(at))->flags & TM_UNIT_HUGE))
		return -EINVAL;
	if (refusal == 0)
		collapsed += bytes;
	return refusal;
}

/* Is there what collapse.c looks at? */
static bool can_look(void)
{
	return access("/proc/self/pagemap", R_OK) == 0 && access("/proc/self/status", R_OK) == 0;
}

static char *fresh_block(void)
{
	char *p;

	heap_fresh();
	tm_huge_clear();
	tm_collapse_clear();
	collapsed = 0;
	calls = 0;
	refusal = 0;
	declined = false;
	os_that_collapses = fake_os;
	os_that_collapses.collapse = fake_collapse;
	tm_zone.os = &os_that_collapses;
	tm_zone.huge = TM_THP_MADVISE;
	/* reads whether a filter stands in the way */
	(void)tm_limit_is_near(1024 * MIB);
	p = tm_large_alloc(BLOCK, 0, TM_FILL_ANY);
	cr_assert_not_null(p);
	return p;
}

static void ticks(int n)
{
	for (int i = 0; i < n; i++)
		(void)tm_collapse_tick();
}

/* A tick at which the part has made new memory resident, so that it isn't quiet. */
static void busy_ticks(int n)
{
	for (int i = 0; i < n; i++) {
		tm_parts[TM_PART_LARGE].fresh_pages += TM_UNIT_PAGES;
		(void)tm_collapse_tick();
	}
}

Test(collapse, full_units_need_not_wait_until_the_part_is_quiet)
{
	char *p = fresh_block();

	if (!can_look() || !tm_limit_may_look())
		return;
	memset(p, 1, BLOCK);
	busy_ticks(1);
	cr_assert_eq(calls, 0);
	busy_ticks(3);
	cr_assert_geq(collapsed, BLOCK - 2 * TM_UNIT_BYTES);
	calls = 0;
	busy_ticks(20);
	cr_assert_eq(calls, 0, "a unit is tried once");
	heap_check();
}

Test(collapse, what_is_written_slowly_is_looked_at_again)
{
	char *p = fresh_block();

	if (!can_look() || !tm_limit_may_look())
		return;
	memset(p, 1, BLOCK / 2);
	busy_ticks(4);
	cr_assert_leq(collapsed, BLOCK / 2);
	memset(p, 1, BLOCK);
	busy_ticks(4);
	cr_assert_geq(collapsed, BLOCK - 2 * TM_UNIT_BYTES);
}

Test(collapse, declined_units_are_advised_once_they_are_full)
{
	char *p = fresh_block();

	if (!can_look() || !tm_limit_may_look())
		return;
	memset(p, 1, BLOCK);
	declined = true;
	busy_ticks(4);
	cr_assert_geq(collapsed, BLOCK - 2 * TM_UNIT_BYTES);
}

#define HOLES 8
#define HOLE (MIB / 2)

static void give_back(char *p)
{
	cr_assert_eq(tm_large_free(p, tm_zone_granule(p)), 0);
	(void)tm_purge_now();
}

/* Units with a hole each that is not resident; of what is in use an eighth is three of them. */
static void make_holes(char *hole[HOLES])
{
	give_back(fresh_block());
	for (int i = 0; i < HOLES; i++) {
		char *p = tm_large_alloc(TM_UNIT_BYTES - HOLE, 0, TM_FILL_ANY);

		hole[i] = tm_large_alloc(HOLE, 0, TM_FILL_ANY);
		cr_assert(p != NULL && hole[i] == p + TM_UNIT_BYTES - HOLE);
		memset(p, 1, TM_UNIT_BYTES);
	}
	for (int i = 0; i < HOLES; i++)
		cr_assert_eq(tm_large_free(hole[i], tm_zone_granule(hole[i])), 0);
	(void)tm_purge_now();
	kernel.dontneed_bytes = 0;
}

static int resident_holes(char *hole[HOLES])
{
	int n = 0;

	for (int i = 0; i < HOLES; i++)
		n += tm_place_cold_pages(tm_zone_page(hole[i]), HOLE / TM_PAGE_BYTES) == 0;
	return n;
}

/* As of a program whose use falls and rises by so much again and again. */
static void work_in_steps_of(size_t bytes)
{
	struct tm_swing *swing = &tm_parts[TM_PART_LARGE].swing;

	swing->peak = 16 * MIB / TM_PAGE_BYTES;
	swing->back = bytes / TM_PAGE_BYTES;
	swing->back_before = 0;
}

Test(collapse, small_holes_are_filled_where_steps_will_use_them)
{
	char *hole[HOLES];
	uint64_t now = 1000;

	make_holes(hole);
	if (!can_look() || !tm_limit_may_look())
		return;
	work_in_steps_of(MIB);
	busy_ticks(20);
	cr_assert_eq(resident_holes(hole), 0, "little would use them");
	work_in_steps_of(8 * MIB);
	busy_ticks(20);
	cr_assert_eq(resident_holes(hole), 3, "at most an eighth of what is in use");
	cr_assert_eq(collapsed, 3 * TM_UNIT_BYTES);
	heap_check();
	for (int i = 0; i < 40; i++)
		(void)tm_purge_tick(now += TM_PURGE_TICK_MS);
	cr_assert_eq(kernel.dontneed_bytes, 0, "no huge page is split for them");
	work_in_steps_of(MIB);
	for (int i = 0; i < 40; i++)
		(void)tm_purge_tick(now += TM_PURGE_TICK_MS);
	cr_assert_geq(kernel.dontneed_bytes, HOLE, "until the steps end");
	heap_check();
}

Test(collapse, larger_holes_stay_as_they_are)
{
	char *p, *q[HOLES];

	give_back(fresh_block());
	if (!can_look() || !tm_limit_may_look())
		return;
	for (int i = 0; i < HOLES; i++) {
		p = tm_large_alloc(TM_UNIT_BYTES / 4, 0, TM_FILL_ANY);
		q[i] = tm_large_alloc(TM_UNIT_BYTES / 4 * 3, 0, TM_FILL_ANY);
		memset(p, 1, TM_UNIT_BYTES / 4);
	}
	for (int i = 0; i < HOLES; i++)
		give_back(q[i]);
	work_in_steps_of(8 * MIB);
	busy_ticks(20);
	cr_assert_eq(collapsed, 0);
}

Test(collapse, lengths_found_full_are_a_reason_to_look)
{
	(void)fresh_block();
	if (!tm_limit_may_look())
		return;
	for (int i = 0; i < 3; i++)
		memset(tm_large_alloc(MIB, 0, TM_FILL_ANY), 1, MIB);
	cr_assert_not(tm_collapse_is_wanted(), "too few samples");
	for (int i = 0; i < 6; i++)
		memset(tm_large_alloc(MIB, 0, TM_FILL_ANY), 1, MIB);
	cr_assert(tm_collapse_is_wanted());
}

Test(collapse, what_is_full_gets_huge_pages_once_it_is_quiet)
{
	char *p = fresh_block();

	if (!can_look() || !tm_limit_may_look())
		return;
	memset(p, 1, BLOCK);
	tm_collapse_want(TM_PART_LARGE);
	ticks(1);
	cr_assert_eq(calls, 0, "what was just taken is still being written");
	cr_assert(tm_collapse_is_wanted());
	ticks(QUIET);
	cr_assert_geq(collapsed, BLOCK - 2 * TM_UNIT_BYTES);
	cr_assert_not(tm_collapse_is_wanted());
	calls = 0;
	tm_collapse_want(TM_PART_LARGE);
	ticks(QUIET);
	cr_assert_eq(calls, 0, "a unit is tried once");
	heap_check();
}

Test(collapse, what_is_not_written_stays_as_it_is)
{
	char *p = fresh_block();

	if (!can_look() || !tm_limit_may_look())
		return;
	memset(p, 1, BLOCK / 2);
	for (size_t at = BLOCK / 2; at < BLOCK; at += 3 * TM_PAGE_BYTES)
		p[at] = 1;
	tm_collapse_want(TM_PART_LARGE);
	ticks(QUIET);
	cr_assert_leq(collapsed, BLOCK / 2);
	cr_assert_geq(collapsed, BLOCK / 2 - 2 * TM_UNIT_BYTES);
}

Test(collapse, memory_that_came_back_is_tried_again)
{
	char *p = fresh_block();

	if (!can_look() || !tm_limit_may_look())
		return;
	memset(p, 1, BLOCK);
	tm_collapse_want(TM_PART_LARGE);
	ticks(QUIET);
	cr_assert_eq(tm_large_free(p, tm_zone_granule(p)), 0);
	(void)tm_purge_now();
	p = tm_large_alloc(BLOCK, 0, TM_FILL_ANY);
	memset(p, 1, BLOCK);
	collapsed = 0;
	tm_collapse_want(TM_PART_LARGE);
	ticks(QUIET + 2);
	cr_assert_geq(collapsed, BLOCK - 2 * TM_UNIT_BYTES);
}

Test(collapse, a_kernel_without_huge_pages_is_left_alone)
{
	char *p = fresh_block();
	long last;

	if (!can_look() || !tm_limit_may_look())
		return;
	refusal = -ENOMEM;
	for (int i = 0; i < 20; i++) {
		memset(p, 1, BLOCK);
		tm_collapse_want(TM_PART_LARGE);
		ticks(QUIET);
		p = tm_large_alloc(BLOCK, 0, TM_FILL_ANY);
	}
	last = calls;
	cr_assert_leq(last, 9);
	memset(p, 1, BLOCK);
	tm_collapse_want(TM_PART_LARGE);
	ticks(QUIET);
	cr_assert_eq(calls, last);
	cr_assert_not(tm_collapse_is_wanted(), "and no helper stays for it");
}

Test(collapse, a_kernel_short_of_huge_pages_is_a_reason_to_look_later)
{
	struct tm_huge_os real = tm_huge_os;
	char *p;

	(void)fresh_block();
	if (!tm_limit_may_look())
		return;
	tm_huge_os.free_bytes = tm_huge_os.now_ms; /* a few: nothing in bytes */
	p = tm_large_alloc(64 * MIB, 0, TM_FILL_ANY);
	cr_assert_not_null(p);
	cr_assert(tm_collapse_is_wanted());
	tm_huge_os = real;
}
