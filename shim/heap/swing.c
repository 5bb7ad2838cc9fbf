/* SPDX-License-Identifier: MIT */
#include "shim/heap/swing.h"

#include "shim/base/bits.h"

/*
 * Length of a window, in pages taken. The current and the previous window are evaluated together.
 */
#define LOW_PAGES (((uint64_t)64 << 20) >> TM_PAGE_SHIFT)
#define BACK_PAGES (((uint64_t)256 << 20) >> TM_PAGE_SHIFT)
/* At least a 50th of the pages in use stays idle. */
#define SHARE 50u
/*
 * A program works in steps if its rebounds reach a quarter of its peak. Blocks are not packed
 * equally well in every step, so an eighth of the rebound is added to what stays idle, and up to
 * half where new memory had to be made resident. A step may be longer than a window, so its rebound
 * fades by an eighth per window, and its peak is kept for up to 16 windows.
 */
#define STEP_SHARE 4u
#define SLACK_SHARE 8u
#define FADE_SHARE 8u
#define STEP_WINDOWS 16u
/* From this debt on tm_swing_note asks for a look before its window ends. */
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
	/*
	 * usage that dropped by a quarter in this window may rise again in a later one: keep the
	 * peak
	 */
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

bool tm_swing_again(struct tm_swing *s, uint64_t pages)
{
	uint64_t taken = s->taken + pages;

	if (taken - s->low_from >= LOW_PAGES || taken - s->back_from >= BACK_PAGES)
		return false;
	s->taken = taken;
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
