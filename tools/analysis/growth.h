/* SPDX-License-Identifier: MIT */
/*
 * growth: does a call site leak, or is it just busy, warming up, or holding long sessions? Pure.
 *
 * The test looks not at what is live but at what is old: objects that have outlived the site's
 * usual lifetime. A site that only got busier leaves none behind; one that leaks has some of every
 * age. The stages, all of which must hold:
 *
 *   rises     the number of old objects rises (trend.h), p < 1e-4
 *   matters   the lower end of the slope's interval is above a floor of bytes
 *   goes on   the second half still rises, at a quarter of the whole slope at least: a cache that
 *             warms up or fills does not
 *   ages      survivors are in three quarters of the cohorts where chance would put them, and
 *             are at least eight: a burst or a doubling vector has them in few cohorts
 *   traffic   the number of births, recent or over the last hour, does not explain the rise
 *   persists  it rose already an eighth of the windows ago, by a less strict limit
 */
#ifndef TM_TOOLS_GROWTH_H
#define TM_TOOLS_GROWTH_H

#include "tools/analysis/trend.h"

#define TM_GROWTH_WINDOWS_MIN 24u /* with fewer windows there is no verdict */

#define TM_GROWTH_COHORTS 32u

struct tm_growth_input {
	size_t windows;        /* oldest first; at most TM_TREND_MAX */
	const double *old;     /* objects older than old_windows when the window ended */
	const double *births;  /* objects born in the window */
	const double *traffic; /* other possible cause (concurrent sessions), or NULL */
	size_t windows_before; /* windows of the process before these */
	double births_before;  /* objects born in those */
	size_t old_windows;
	/* live objects by age in windows; the last includes all older ones */
	double cohort[TM_GROWTH_COHORTS];
	double bytes_per_object;
	double floor_bytes_per_window;
};

enum tm_growth_stage {
	TM_GROWTH_TOO_FEW_WINDOWS,
	TM_GROWTH_RISES,
	TM_GROWTH_MATTERS,
	TM_GROWTH_GOES_ON,
	TM_GROWTH_AGES,
	TM_GROWTH_TRAFFIC,
	TM_GROWTH_PERSISTS,
	TM_GROWTH_LEAK, /* all stages hold */
};

struct tm_growth {
	enum tm_growth_stage stage; /* the first that fails */
	struct tm_trend trend;      /* of the number of old objects, per window */
	double second_half;         /* slope of the second half divided by the whole slope */
	size_t life_windows;        /* age after which no more objects of a cohort die */
	double cohort_fill;         /* share of older cohorts with survivors */
	double survivors;
	double still_die;        /* survival in the older half relative to the younger half */
	double rho_births;       /* rank correlation of old objects and births */
	double partial;          /* partial correlation with time, given births */
	double bytes_per_object; /* as given */
};

void tm_growth_test(const struct tm_growth_input *input, struct tm_growth *ret_growth);

/* A word or two for the stage that failed: why it is no leak. */
const char *tm_growth_stage_word(enum tm_growth_stage stage);

#endif
