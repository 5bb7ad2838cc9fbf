/* SPDX-License-Identifier: MIT */
/* huge, tier, buddy: the ladder of pages, why a step was not taken, parts and ceilings of tiers. */
#include <criterion/criterion.h>

#include "shim/heap/huge.h"
#include "shim/heap/tier.h"
#include "shim/os/buddy.h"
#include "tests/unit/heap_fake.h"

static int pool_error;
static struct tm_zone_os os_with_pool;

static int fake_map_hugetlb(void *at, size_t bytes, unsigned shift)
{
	(void)shift;
	return pool_error ? pool_error : tm_mem_map_at(at, bytes, PROT_READ | PROT_WRITE);
}

/* A pool of huge pages that answers with this error, 0: it has enough. */
static void with_pool(int error)
{
	heap_fresh();
	tm_huge_clear();
	pool_error = error;
	os_with_pool = fake_os;
	os_with_pool.map_hugetlb = fake_map_hugetlb;
	tm_zone.os = &os_with_pool;
	tm_zone.hugetlb_shift = TM_UNIT_SHIFT;
}

static void *take(enum tm_tier tier, size_t bytes)
{
	return tm_large_take(&(struct tm_large_request){bytes, 0, TM_FILL_ANY, tier,
							tm_tier_part(tier, TM_TIER_ASKED)});
}

static uint64_t stands(enum tm_huge_step step)
{
	uint64_t bytes[TM_HUGE_STEPS];

	tm_huge_stats(TM_PART_PERSISTENT, bytes);
	return bytes[step];
}

Test(buddy, counts_what_is_free_in_pieces_of_two_mebibytes)
{
	cr_assert_eq(
		tm_buddy_parse("Node 0, zone      DMA      1      0      0      0      0      0"
			       "      0      0      0      1      3\n"
			       "Node 0, zone   Normal   5000   4000      0      0      0      0"
			       "      0      0      0      0      1\n"),
		(1 + 2 * 3 + 2) * 2 * MIB);
	cr_assert_eq(tm_buddy_parse(""), 0);
	cr_assert_eq(tm_buddy_parse("Node 0, zone DMA"), 0);
}

Test(huge, persistent_blocks_come_from_the_pool_and_stay)
{
	char *p;

	with_pool(0);
	p = take(TM_TIER_PERSISTENT, 8 * MIB);
	cr_assert_not_null(p);
	cr_assert_geq(stands(TM_HUGE_ON_2M), 8 * MIB);
	cr_assert_eq(tm_large_free(p, tm_zone_granule(p)), 0);
	kernel.dontneeds = 0;
	(void)tm_purge_now();
	cr_assert_eq(kernel.dontneeds, 0, "pages of a pool are not given back");
	heap_check();
}

Test(huge, an_empty_pool_is_counted_and_plain_memory_serves)
{
	with_pool(-ENOMEM);
	cr_assert_not_null(take(TM_TIER_PERSISTENT, 8 * MIB));
	cr_assert_eq(stands(TM_HUGE_ON_2M), 0);
	cr_assert_geq(tm_huge.pool_empty, 4);
	heap_check();
}

Test(huge, other_tiers_leave_the_pool_alone)
{
	with_pool(0);
	cr_assert_not_null(take(TM_TIER_SESSION, 8 * MIB));
	cr_assert_not_null(take(TM_TIER_TEMPORARY, 8 * MIB));
	cr_assert_eq(stands(TM_HUGE_ON_2M), 0);
	cr_assert_eq(tm_zone_unit(0)->flags & TM_UNIT_HUGETLB, 0);
	heap_check();
}

Test(huge, who_declined_is_told_apart)
{
	heap_fresh();
	tm_zone.huge = TM_THP_NEVER;
	tm_huge.by_user = true;
	cr_assert_not_null(take(TM_TIER_PERSISTENT, 8 * MIB));
	cr_assert_geq(stands(TM_HUGE_USER_OFF), 8 * MIB);
}

Test(tier, each_asked_for_tier_lies_in_its_part)
{
	char *p, *s, *t;

	heap_fresh();
	p = take(TM_TIER_PERSISTENT, MIB);
	s = take(TM_TIER_SESSION, MIB);
	t = take(TM_TIER_TEMPORARY, MIB);
	cr_assert_eq(tm_zone_unit(tm_zone_page(p))->part, TM_PART_PERSISTENT);
	cr_assert_eq(tm_zone_unit(tm_zone_page(s))->part, TM_PART_LARGE);
	cr_assert_eq(tm_zone_unit(tm_zone_page(t))->part, TM_PART_TEMPORARY);
	cr_assert_eq(tm_zone_granule(p)->tier, TM_TIER_PERSISTENT);
	cr_assert_eq(tm_zone_granule(t)->tier, TM_TIER_TEMPORARY);
	heap_check();
}

Test(tier, beyond_its_ceiling_a_request_fails_and_is_counted)
{
	uint64_t max[TM_TIER_COUNT] = {UINT64_MAX, UINT64_MAX, 4 * MIB, UINT64_MAX};
	char *p;

	heap_fresh();
	tm_tier_configure(max);
	p = take(TM_TIER_SESSION, 3 * MIB);
	cr_assert_not_null(p);
	cr_assert_null(take(TM_TIER_SESSION, 2 * MIB));
	cr_assert_eq(tm_tiers[TM_TIER_SESSION].refused, 1);
	cr_assert_null(tm_large_resize(p, tm_zone_granule(p), 5 * MIB), "growth counts");
	cr_assert_not_null(take(TM_TIER_PERSISTENT, 8 * MIB), "others are not meant");
	cr_assert_eq(tm_large_free(p, tm_zone_granule(p)), 0);
	cr_assert_not_null(take(TM_TIER_SESSION, 4 * MIB));
	heap_check();
}

Test(tier, memory_refused_to_one_part_is_looked_for_in_the_others)
{
	char *p;

	heap_fresh();
	p = take(TM_TIER_PERSISTENT, 3 * MIB);
	cr_assert_not_null(take(TM_TIER_PERSISTENT, MIB));
	cr_assert_eq(tm_large_free(p, tm_zone_granule(p)), 0);
	kernel.fail_at = kernel.calls + 1;
	kernel.fail_rest = 1;
	cr_assert_not_null(take(TM_TIER_SESSION, MIB));
	heap_check();
}
