/* SPDX-License-Identifier: MIT */
/*
 * growth: does a call site leak, or is it busy, warming up, or holding long sessions? Pure.
 *
 * Not what is live is tested but what is old: objects that have outlived the site's usual life. Of a
 * site that only got busier, none are left behind; of one that leaks, every age has some. The stages,
 * each of which must hold:
 *
 *   rises     the number of old objects rises (trend.h), p < 1e-4
 *   matters   the lower end of its slope's interval is above a floor of bytes
 *   goes on   its second half still rises, by a quarter of the whole slope at least: what warms up
 *             or fills does not
 *   ages      survivors lie in three quarters of the cohorts in which chance would put them, and
 *             are eight at least: a burst or a doubling vector has them in a few
 *   traffic   the number of births, of late or over the last hour, does not explain it
 *   persists  the first three held an eighth of the windows ago too
 */
#ifndef TM_TOOLS_GROWTH_H
#define TM_TOOLS_GROWTH_H

#include "tools/trend.h"

#define TM_GROWTH_WINDOWS_MIN 24u /* with fewer windows there is no verdict */

#define TM_GROWTH_COHORTS 32u

struct tm_growth_input {
	size_t windows;        /* oldest first; at most TM_TREND_MAX */
	const double *old;     /* objects older than old_windows when the window ended */
	const double *births;  /* objects born in the window */
	const double *traffic; /* NULL, or what else may explain it (sessions at a time) */
	size_t windows_before; /* of the process, before these */
	double births_before;  /* in those */
	size_t old_windows;
	double cohort[TM_GROWTH_COHORTS]; /* that live now, by age in windows; last: or older */
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
	struct tm_trend trend;      /* of old objects, per window */
	double second_half;         /* slope of the second half / whole slope */
	size_t life_windows;        /* age from which on no more of a cohort die */
	double cohort_fill;         /* share of older cohorts that have survivors */
	double survivors;
	double still_die;        /* share of the younger half's survivors that the older half has */
	double rho_births;       /* rank correlation of old objects with births */
	double partial;          /* with time, what births explain taken out */
	double bytes_per_object; /* as given */
};

void tm_growth_test(const struct tm_growth_input *input, struct tm_growth *ret_growth);

/* A word or two for the stage: why it is no leak. */
const char *tm_growth_stage_word(enum tm_growth_stage stage);

#endif
