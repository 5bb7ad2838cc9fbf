/* SPDX-License-Identifier: MIT */
#include "shim/heap/swing.h"

#include "shim/base/bits.h"

/* Half of a window each: two are remembered, the one that goes on and the one before. */
#define LOW_PAGES (((uint64_t)64 << 20) >> TM_PAGE_SHIFT)
#define BACK_PAGES (((uint64_t)256 << 20) >> TM_PAGE_SHIFT)
/* Stays beside what is in use, whatever happens: a 50th. */
#define SHARE 50u
/*
 * Steps take and give a quarter of all and more each time. Blocks don't fit as tightly every time: an
 * eighth more stays, up to a half where new memory was taken. And a step may be longer than a window:
 * it is forgotten slowly.
 */
#define STEP_SHARE 4u
#define SLACK_SHARE 8u
#define FADE_SHARE 8u
#define STEP_WINDOWS 16u
/* Debts from here on are worth a look. */
#define DEBT_PAGES (((uint64_t)16 << 20) >> TM_PAGE_SHIFT)

bool tm_swing_is_step(const struct tm_swing *s)
{
	return tm_bits_max(s->back, s->back_before) * STEP_SHARE >= s->peak && s->peak != 0;
}

static uint64_t hot_pages(const struct tm_swing *s)
{
	uint64_t back = tm_bits_max(s->back, s->back_before);
	uint64_t cold = tm_bits_max(s->cold, s->cold_before);

	if (back * STEP_SHARE < s->peak)
		return back;
	return back + back / SLACK_SHARE + tm_bits_min(cold, back / 2);
}

static void end_window(struct tm_swing *s, uint64_t used)
{
	bool step = tm_swing_is_step(s);

	s->back_from = s->taken;
	s->back_before =
		step ? tm_bits_max(s->back, s->back_before - s->back_before / FADE_SHARE) : s->back;
	s->back = 0;
	s->cold_before = s->cold;
	s->cold = 0;
	/* a step that fell in this window may rise in a later one */
	if ((s->peak - s->trough) * STEP_SHARE >= s->peak && ++s->peak_age < STEP_WINDOWS)
		return;
	s->peak = used;
	s->trough = used;
	s->peak_age = 0;
}

bool tm_swing_note(struct tm_swing *s, uint64_t used, uint64_t idle, uint64_t taken)
{
	s->taken += taken;
	if (used >= s->peak) {
		s->peak = used;
		s->trough = used;
		s->peak_age = 0;
	}
	s->trough = tm_bits_min(s->trough, used);
	s->back = tm_bits_max(s->back, used - s->trough);
	if (s->taken - s->back_from >= BACK_PAGES)
		end_window(s, used);
	s->low = tm_bits_min(s->low, idle);
	if (s->taken - s->low_from < LOW_PAGES)
		return s->debt >= DEBT_PAGES;
	s->low_from = s->taken;
	s->low_before = s->low;
	s->low = idle;
	return true;
}

void tm_swing_cold(struct tm_swing *s, uint64_t pages, uint64_t idle)
{
	s->cold += pages;
	s->debt += tm_bits_min(pages, idle);
}

uint64_t tm_swing_surplus(const struct tm_swing *s, uint64_t used, uint64_t idle, uint64_t keep)
{
	uint64_t hot = tm_bits_max(tm_bits_max(keep, used / SHARE), hot_pages(s));
	uint64_t unneeded = tm_bits_max(tm_bits_min(s->low, s->low_before), s->debt);

	return idle > hot ? tm_bits_min(idle - hot, unneeded) : 0;
}

void tm_swing_purged(struct tm_swing *s, uint64_t pages)
{
	s->low -= tm_bits_min(s->low, pages);
	s->low_before -= tm_bits_min(s->low_before, pages);
	s->debt -= tm_bits_min(s->debt, pages);
}
