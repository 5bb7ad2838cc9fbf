/* SPDX-License-Identifier: MIT */
/* swing: which free memory a program does not want again, by what it takes and gives. */
#include <criterion/criterion.h>

#include "shim/heap/swing.h"

#define PAGES_OF_MIB(mib) ((uint64_t)(mib) << (20 - TM_PAGE_SHIFT))
#define KEEP PAGES_OF_MIB(8)

/* A part without pieces: what is free is resident, until it is given back. */
static struct tm_swing swing;
static uint64_t used, resident;

static void take(uint64_t mib)
{
	uint64_t pages = PAGES_OF_MIB(mib);
	uint64_t idle = resident - used;

	if (pages > idle) {
		tm_swing_cold(&swing, pages - idle, 0);
		resident += pages - idle;
	}
	used += pages;
	(void)tm_swing_note(&swing, used, resident - used, pages);
}

static void give(uint64_t mib)
{
	used -= PAGES_OF_MIB(mib);
	(void)tm_swing_note(&swing, used, resident - used, 0);
}

static uint64_t surplus(void)
{
	return tm_swing_surplus(&swing, used, resident - used, KEEP);
}

static void purge(void)
{
	uint64_t pages = surplus();

	resident -= pages;
	tm_swing_purged(&swing, pages);
}

static void begin(uint64_t mib)
{
	swing = (struct tm_swing){.taken = 0};
	used = resident = 0;
	for (uint64_t i = 0; i < mib; i += 8)
		take(8);
}

Test(swing, steps_keep_what_they_take_again)
{
	begin(0);
	for (int step = 0; step < 100; step++) {
		for (int i = 0; i < 25; i++)
			take(8);
		/* the first fall can't be told from an end */
		if (step > 2)
			cr_assert_eq(surplus(), 0, "step %d", step);
		give(200);
		if (step > 2)
			cr_assert_eq(surplus(), 0, "after step %d", step);
	}
}

Test(swing, steps_longer_than_a_window_are_remembered)
{
	begin(0);
	for (int step = 0; step < 20; step++) {
		for (int i = 0; i < 25; i++)
			take(8);
		give(200);
		/* for a while little is used, over and over */
		for (int i = 0; i < 80; i++) {
			take(8);
			give(8);
		}
		if (step > 1)
			cr_assert_leq(surplus(), PAGES_OF_MIB(100), "most of it stays");
		purge();
	}
}

Test(swing, a_decline_goes_while_work_goes_on)
{
	begin(1600);
	for (int i = 0; i < 40; i++) {
		give(40);
		take(24);
		purge();
	}
	cr_assert_eq(used, PAGES_OF_MIB(960));
	cr_assert_leq(resident - used, PAGES_OF_MIB(64), "%lu MiB idle",
		      (unsigned long)(resident - used) >> 8);
}

Test(swing, an_end_is_no_decline)
{
	begin(200);
	give(200);
	cr_assert_eq(surplus(), 0, "nothing was taken since: the next phase may want it");
}

Test(swing, what_lies_in_too_small_pieces_goes_for_new_memory)
{
	begin(1600);
	give(100);
	tm_swing_cold(&swing, PAGES_OF_MIB(60), resident - used);
	cr_assert_geq(surplus(), PAGES_OF_MIB(50));
	cr_assert_leq(surplus(), PAGES_OF_MIB(60));
	purge();
	cr_assert_eq(surplus(), 0);
	tm_swing_cold(&swing, PAGES_OF_MIB(60), 0);
	cr_assert_eq(surplus(), 0, "nothing was idle");
}
