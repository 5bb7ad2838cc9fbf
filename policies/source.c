/* SPDX-License-Identifier: MIT */
/* source: see source.h. */
#include "policies/source.h"

/*
 * Repacked weights must be somewhere: blocks hold at least half as many live bytes (f32 made f16).
 */
#define REPACKED_SHARE 2u
/* If at most 1/8 of the dropped bytes came back, the file is not read in each step. */
#define BACK_SHARE 8u

static bool is_back(const struct tm_source_file *s, uint64_t resident)
{
	return resident > s->resident && resident - s->resident > s->dropped / BACK_SHARE;
}

enum tm_source_action tm_source_decide(struct tm_source_file *s, const struct tm_source_view *view)
{
	if (tm_source_is_done(s))
		return TM_SOURCE_NOTHING;
	if (s->worked_ms == 0)
		s->worked_ms = view->worked_ms + 1;
	if (view->worked_ms < s->worked_ms + TM_SOURCE_WORK_MS)
		return TM_SOURCE_NOTHING;
	switch ((enum tm_source_state)s->state) {
	case TM_SOURCE_NEW:
		if (view->resident < TM_SOURCE_MIN_BYTES / 2 ||
		    view->allocated < view->sources / REPACKED_SHARE)
			return TM_SOURCE_NOTHING;
		s->state = TM_SOURCE_SAMPLED;
		break;
	case TM_SOURCE_SAMPLED:
		s->state = is_back(s, view->resident) ? TM_SOURCE_READ : TM_SOURCE_DROPPED;
		break;
	case TM_SOURCE_DROPPED:
		s->state = is_back(s, view->resident) ? TM_SOURCE_READ : TM_SOURCE_GONE;
		break;
	case TM_SOURCE_GONE:
	case TM_SOURCE_READ: break;
	}
	s->worked_ms = view->worked_ms;
	s->resident = view->resident;
	return s->state == TM_SOURCE_SAMPLED   ? TM_SOURCE_DROP_SAMPLE
	       : s->state == TM_SOURCE_DROPPED ? TM_SOURCE_DROP_ALL
					       : TM_SOURCE_NOTHING;
}

void tm_source_dropped(struct tm_source_file *s, uint64_t resident)
{
	s->dropped = s->resident > resident ? s->resident - resident : 0;
	s->resident = resident;
	/*
	 * nothing was resident, or dropping failed: the trial told nothing, so leave the file alone
	 */
	if (s->dropped == 0)
		s->state = TM_SOURCE_READ;
}

bool tm_source_is_done(const struct tm_source_file *s)
{
	return s->state == TM_SOURCE_GONE || s->state == TM_SOURCE_READ;
}
