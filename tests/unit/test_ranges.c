/* SPDX-License-Identifier: MIT */
/* ranges: every range that contains an address is found, however they overlap, and no other. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "tools/analysis/ranges.h"

Test(ranges, an_empty_table_finds_nothing)
{
	struct tm_ranges r = {0};

	tm_ranges_add(&r, 8, 8, 1);
	tm_ranges_sort(&r);
	cr_assert_eq(r.count, 0);
	cr_assert_null(tm_ranges_find(&r, 8));
	tm_ranges_clear(&r);
}

Test(ranges, ends_lie_outside)
{
	struct tm_ranges r = {0};

	tm_ranges_add(&r, 32, 48, 2);
	tm_ranges_add(&r, 16, 32, 1);
	tm_ranges_sort(&r);
	cr_assert_null(tm_ranges_find(&r, 15));
	cr_assert_eq(tm_ranges_find(&r, 16)->number, 1);
	cr_assert_eq(tm_ranges_find(&r, 31)->number, 1);
	cr_assert_eq(tm_ranges_find(&r, 32)->number, 2);
	cr_assert_null(tm_ranges_find(&r, 48));
	tm_ranges_clear(&r);
}

/* Which numbers contain the address, as a set of bits. */
static uint64_t found(const struct tm_ranges *r, uint64_t address)
{
	const struct tm_range *range = tm_ranges_find(r, address);
	uint64_t set = 0;

	for (; range; range = tm_ranges_next(r, range, address)) {
		cr_assert_eq(set >> range->number & 1, 0, "found twice");
		set |= UINT64_C(1) << range->number;
	}
	return set;
}

Test(ranges, overlapping_ones_are_all_found)
{
	srand(1);
	for (int round = 0; round < 200; round++) {
		struct tm_ranges r = {0};
		uint64_t low[60], high[60];

		for (uint64_t i = 0; i < 60; i++) {
			low[i] = (uint64_t)rand() % 200;
			high[i] = low[i] + 1 + (uint64_t)rand() % (i % 7 ? 9 : 120);
			tm_ranges_add(&r, low[i], high[i], i);
		}
		tm_ranges_sort(&r);
		for (uint64_t address = 0; address < 340; address++) {
			uint64_t want = 0;

			for (uint64_t i = 0; i < 60; i++)
				want |= (uint64_t)(low[i] <= address && address < high[i]) << i;
			cr_assert_eq(found(&r, address), want);
		}
		tm_ranges_clear(&r);
	}
}
