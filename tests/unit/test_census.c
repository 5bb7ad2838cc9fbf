/* SPDX-License-Identifier: MIT */
/* census: all objects are counted, a slice at a time. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "shim/ledger/census.h"
#include "shim/ledger/ledger.h"
#include "tests/unit/engine.h"

#define OBJECTS 200000u
#define BLOCKS 40u
#define BLOCK_BYTES ((size_t)100 << 10)

static void *object[OBJECTS], *block[BLOCKS];

static void allocate(void)
{
	for (unsigned i = 0; i < OBJECTS; i++)
		object[i] = tm_root.ops.malloc(i % 3 == 0 ? 100 : 24);
	for (unsigned i = 0; i < BLOCKS; i++)
		block[i] = tm_root.ops.malloc(BLOCK_BYTES);
}

Test(census, slices_count_what_a_whole_walk_does)
{
	struct tm_census_totals whole;
	unsigned slices = 1;

	setenv("TIERMALLOC_TARGET", "no-such-program", 1);
	need_engine();
	allocate();
	cr_assert_eq(tm_census_begin(TM_CENSUS_TOTALS), 0);
	cr_assert(tm_census_go_on(TM_CENSUS_WHOLE));
	whole = *tm_census_totals();
	tm_census_end();
	cr_assert_eq(tm_census_longest(), 0, "a whole walk is none of slices");
	cr_assert_geq(whole.objects[0], OBJECTS + BLOCKS);
	cr_assert_eq(tm_census_begin(TM_CENSUS_TOTALS), 0);
	for (; !tm_census_go_on(TM_CENSUS_SLICE); slices++)
		cr_assert_eq(tm_census_now(), TM_CENSUS_TOTALS);
	tm_census_end();
	cr_assert_eq(whole.objects[0], tm_census_totals()->objects[0]);
	cr_assert_eq(whole.live_bytes[0], tm_census_totals()->live_bytes[0]);
	cr_assert_eq(whole.slot_bytes[0], tm_census_totals()->slot_bytes[0]);
	cr_assert_geq(slices, OBJECTS / TM_CENSUS_SLICE_MOST);
	cr_assert_leq(tm_census_longest(), TM_CENSUS_SLICE_MOST);
}

Test(census, requests_count_no_more_than_a_slice)
{
	const struct tm_ledger_header *header;

	setenv("TIERMALLOC_LEDGER", "on", 1);
	setenv("TIERMALLOC_THREAD", "never", 1);
	setenv("TIERMALLOC_LEAK_WINDOW_MS", "100", 1);
	need_engine();
	header = tm_ledger_header();
	if (header == NULL)
		cr_skip_test("no ledger here: %s", tm_ledger_why_none());
	allocate();
	/* samples that were begun with all of it there, and a window's end */
	for (uint64_t n = header->samples[0]; header->samples[0] < n + 3 || header->windows < 2;)
		tm_root.ops.free(tm_root.ops.malloc(BLOCK_BYTES));
	cr_assert_gt(tm_census_longest(), TM_CENSUS_SLICE / 2, "it took slices");
	cr_assert_leq(tm_census_longest(), TM_CENSUS_SLICE_MOST);
}
