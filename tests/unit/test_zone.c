/* SPDX-License-Identifier: MIT */
/* zone: the window of addresses, its front, what is foreign. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "tests/unit/heap_fake.h"

static void check(void)
{
	const char *broken = tm_zone_check();

	cr_assert(broken == NULL, "%s", broken);
}

Test(zone, maps_nothing_at_first)
{
	heap_fresh();
	cr_assert_eq(tm_zone.len, 0);
	cr_assert_eq(tm_zone.base % TM_UNIT_BYTES, 0);
	/* the first page of the zone is still free */
	cr_assert_eq(tm_mem_map_at((void *)tm_zone.base, TM_PAGE_BYTES, PROT_READ), 0);
	cr_assert_eq(tm_mem_unmap((void *)tm_zone.base, TM_PAGE_BYTES), 0);
	check();
}

Test(zone, knows_strangers_from_its_own)
{
	uint32_t page;
	int on_stack = 0;

	heap_fresh();
	cr_assert_eq(tm_zone_step(TM_PART_SPAN, TM_UNIT_BYTES, 2 * TM_UNIT_BYTES, &page),
		     2 * TM_UNIT_BYTES);
	cr_assert(tm_zone_contains(tm_zone_page_addr(page)));
	cr_assert_not(tm_zone_contains(&on_stack));
	cr_assert_not(tm_zone_contains(NULL));
	cr_assert_not(tm_zone_contains((void *)(tm_zone.base - 1)));
	cr_assert_not(tm_zone_contains((void *)(tm_zone.base + tm_zone.len)));
	cr_assert_eq(tm_granule_owner(tm_zone_granule(tm_zone_page_addr(page))), TM_OWNER_NONE);
	check();
}

Test(zone, steps_of_a_part_adjoin)
{
	uint32_t a, b, c;

	heap_fresh();
	cr_assert_eq(tm_zone_step(TM_PART_LARGE, 4 * MIB, 4 * MIB, &a), 4 * MIB);
	cr_assert_eq(tm_zone_step(TM_PART_SPAN, 4 * MIB, 4 * MIB, &b), 4 * MIB);
	cr_assert_eq(tm_zone_step(TM_PART_LARGE, 4 * MIB, 4 * MIB, &c), 4 * MIB);
	cr_assert_eq(c, a + 4 * MIB / TM_PAGE_BYTES);
	/* more than the part's share of addresses */
	cr_assert_eq(tm_zone_step(TM_PART_LARGE, 3072 * MIB, 0, &c), 3072 * MIB);
	cr_assert_eq(tm_zone_step(TM_PART_SPAN, 4 * MIB, 4 * MIB, &c), 4 * MIB);
	cr_assert_eq(c, b + 4 * MIB / TM_PAGE_BYTES);
	check();
}

Test(zone, halves_the_step_down_to_the_need)
{
	uint32_t page;

	heap_fresh();
	/* the bare need at last, within a unit, which the next step then fills */
	kernel.fail_rest = 1;
	for (int i = 0; i < 3; i++) {
		kernel.fail_at = 0;
		cr_assert_neq(tm_zone_step(TM_PART_SPAN, 2 * MIB, 2 * MIB, &page), 0);
		for (long refused = 1; refused < 6; refused++) {
			kernel.fail_at = kernel.calls + 1;
			kernel.fail_rest = 0;
			size_t got = tm_zone_step(TM_PART_SPAN, 64 << 10, 0, &page);
			cr_assert_eq(got % (64 << 10), 0);
			cr_assert_neq(got, 0);
		}
	}
	/* 64, 32, 16, 8 MiB are refused */
	for (int refused = 1; refused <= 4; refused++) {
		kernel.fail_at = kernel.calls + 1;
		kernel.fail_rest = 0;
		size_t got = tm_zone_step(TM_PART_LARGE, 2 * MIB, 64 * MIB, &page);
		cr_assert(got >= 2 * MIB && got <= 64 * MIB);
	}
	kernel.fail_at = kernel.calls + 1;
	kernel.fail_rest = 1;
	cr_assert_eq(tm_zone_step(TM_PART_LARGE, 2 * MIB, 64 * MIB, &page), 0);
	kernel.fail_at = 0;
	cr_assert_geq(tm_zone_step(TM_PART_LARGE, 2 * MIB, 4 * MIB, &page), 2 * MIB);
	check();
}

Test(zone, a_refused_step_always_ends)
{
	uint32_t page;

	heap_fresh();
	for (size_t need = 64 << 10; need < 9 * MIB; need += 192 << 10) {
		kernel.calls = 0;
		kernel.fail_at = 1;
		kernel.fail_rest = 1;
		cr_assert_eq(tm_zone_step(TM_PART_LARGE, need, 64 * MIB, &page), 0);
		cr_assert_lt(kernel.calls, 20);
		/* so that the next begins within a unit */
		kernel.fail_at = kernel.calls + 1;
		kernel.fail_rest = 0;
		(void)tm_zone_step(TM_PART_LARGE, need, 0, &page);
	}
	check();
}

Test(zone, leaves_foreign_mappings_alone)
{
	char *foreign;
	uint32_t page;

	heap_fresh();
	foreign = (char *)tm_zone.base + 3 * TM_UNIT_BYTES;
	cr_assert_eq(tm_mem_map_at(foreign, 5 * TM_UNIT_BYTES, PROT_READ | PROT_WRITE), 0);
	memset(foreign, 0x5a, 5 * TM_UNIT_BYTES);
	for (int i = 0; i < 10; i++) {
		size_t got = tm_zone_step(TM_PART_SPAN, 4 * MIB, 16 * MIB, &page);
		char *p = tm_zone_page_addr(page);

		cr_assert_geq(got, 4 * MIB);
		cr_assert(p + got <= foreign || p >= foreign + 5 * TM_UNIT_BYTES);
		memset(p, 1, got);
	}
	for (size_t i = 0; i < 5 * TM_UNIT_BYTES; i++)
		cr_assert_eq(foreign[i], 0x5a);
	/* the stranger has granules without an owner */
	cr_assert(tm_zone_contains(foreign));
	cr_assert_eq(tm_granule_owner(tm_zone_granule(foreign)), TM_OWNER_NONE);
	tm_mem_unmap(foreign, 5 * TM_UNIT_BYTES);
}

Test(zone, grows_tables_with_the_front)
{
	uint32_t page;
	size_t total = 0;

	heap_fresh();
	while (total < (size_t)8 << 30) {
		size_t got = tm_zone_step(TM_PART_LARGE, 512 * MIB, 512 * MIB, &page);

		cr_assert_eq(got, 512 * MIB);
		total += got;
		cr_assert_eq(tm_zone_granule(tm_zone_page_addr(page) + got - 1)->owner, 0);
	}
	check();
}

Test(zone, full_window_is_an_error_not_a_crash)
{
	uint32_t page;

	heap_fresh();
	cr_assert_eq(tm_zone_reserve(TM_PART_GROW, tm_zone.limit + TM_UNIT_BYTES, &page), 0);
	cr_assert_eq(tm_zone_step(TM_PART_LARGE, tm_zone.limit + TM_UNIT_BYTES, 0, &page), 0);
	check();
}

Test(zone, taints_only_the_units_that_are_named)
{
	uint32_t page;

	heap_fresh();
	tm_zone_step(TM_PART_LARGE, 16 * MIB, 16 * MIB, &page);
	cr_assert_not(tm_zone_is_tainted(page, 16 * MIB / TM_PAGE_BYTES));
	tm_zone_taint((char *)tm_zone_page_addr(page) + 3 * MIB, 4096);
	cr_assert_not(tm_zone_is_tainted(page, TM_UNIT_PAGES));
	cr_assert(tm_zone_is_tainted(page + TM_UNIT_PAGES, 1));
	cr_assert_not(tm_zone_is_tainted(page + 2 * TM_UNIT_PAGES, TM_UNIT_PAGES));
	/* ranges that only overlap the zone, or miss it */
	tm_zone_taint((void *)(tm_zone.base - 4096), 8192);
	cr_assert(tm_zone_is_tainted(page, 1));
	tm_zone_taint((void *)(tm_zone.base - 4096), 4096);
	tm_zone_taint((void *)(tm_zone.base + tm_zone.len), 4096);
	tm_zone_taint((void *)8, SIZE_MAX);
	cr_assert_not(tm_zone_is_tainted(page + 7 * TM_UNIT_PAGES, TM_UNIT_PAGES));
}

Test(zone, survives_refusals_at_every_call)
{
	uint32_t page;

	for (long n = 1; n < 12; n++) {
		heap_fresh();
		kernel.fail_at = n;
		(void)tm_zone_step(TM_PART_LARGE, 128 * MIB, 256 * MIB, &page);
		(void)tm_zone_step(TM_PART_SPAN, 128 * MIB, 256 * MIB, &page);
		(void)tm_zone_reserve(TM_PART_GROW, 512 * MIB, &page);
		check();
		kernel.fail_at = 0;
		cr_assert_neq(tm_zone_step(TM_PART_LARGE, 2 * MIB, 2 * MIB, &page), 0);
		check();
	}
}
