/* SPDX-License-Identifier: MIT */
/* collapse: huge pages for what was written on small ones; settle: who asks for them. */
#include <criterion/criterion.h>
#include <unistd.h>

#include "shim/heap/collapse.h"
#include "shim/heap/huge.h"
#include "shim/heap/limit.h"
#include "tests/unit/heap_fake.h"

#define BLOCK (16 * MIB) /* below what gets huge pages at once */
#define QUIET 12         /* ticks */

static struct tm_zone_os os_that_collapses;
static size_t collapsed;
static int refusal;
static long calls;

static int fake_collapse(void *at, size_t bytes)
{
	(void)at;
	calls++;
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

Test(collapse, what_is_full_gets_huge_pages_once_it_is_quiet)
{
	char *p = fresh_block();

	if (!can_look() || !tm_limit_may_look())
		return;
	memset(p, 1, BLOCK);
	tm_collapse_want(TM_PART_LARGE);
	ticks(3);
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
