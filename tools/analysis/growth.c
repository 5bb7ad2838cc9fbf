/* SPDX-License-Identifier: MIT */
#include "tools/analysis/growth.h"

#include <math.h>

#define P_RISES 1e-4
#define P_ROSE 1e-2
#define P_SECOND_HALF 0.01
#define SECOND_HALF_SHARE 0.25
/*
 * If the second half's share of the slope is less than this, the last third decides: a cache that
 * fills is nearly full by then.
 */
#define SECOND_HALF_SURE 0.5
#define LAST_THIRD_SHARE 0.33
#define FILL_SHARE 0.75
#define SURVIVORS_MIN 8.0
/* Cohorts are counted from this age at most, so that at least a third of them is judged. */
#define FILL_FROM_MAX 20u
/*
 * The survival of the oldest cohorts is the plateau: that many cohorts, and up to that factor
 * counts as equal.
 */
#define PLATEAU_COHORTS 6u
#define PLATEAU_SLACK 1.5
/*
 * If old cohorts survive at less than this share of the rate of younger ones, at the 5 % level,
 * objects still die.
 */
#define DECAY_SLACK 0.8
#define Z_DECAY 2.0
/* Births explain the rise if their correlation is at least this ... */
#define EXPLAINS_RHO 0.5
/* ... and the partial correlation with time is below this. */
#define PARTIAL_MIN 0.25

/*
 * Tests whether old objects rise. Until the process is as old as the site's objects get there can
 * be no old ones; that the first ones appear is no growth.
 */
static enum tm_growth_stage test_rise(const struct tm_growth_input *in, size_t windows,
				      struct tm_growth *g)
{
	size_t skip =
		in->old_windows > in->windows_before ? in->old_windows - in->windows_before : 0;
	struct tm_trend late, last;

	if (skip + TM_GROWTH_WINDOWS_MIN > windows)
		return TM_GROWTH_TOO_FEW_WINDOWS;
	const double *old = in->old + skip;
	windows -= skip;
	size_t half = windows / 2, third = windows / 3;

	tm_trend_test(old, windows, &g->trend);
	if (g->trend.p >= P_RISES || g->trend.slope <= 0)
		return TM_GROWTH_RISES;
	tm_trend_test(old + (windows - half), half, &late);
	tm_trend_test(old + (windows - third), third, &last);
	g->second_half = g->trend.slope > 0 ? late.slope / g->trend.slope : 0;
	double last_third = g->trend.slope > 0 ? last.slope / g->trend.slope : 0;
	if (g->trend.slope_low * in->bytes_per_object <= in->floor_bytes_per_window)
		return TM_GROWTH_MATTERS;
	/* Half the values: a correction for two tests would cost the remaining power. */
	if (tm_trend_tail(late.z * sqrt(late.variance_factor)) >= P_SECOND_HALF ||
	    g->second_half < SECOND_HALF_SHARE ||
	    (g->second_half < SECOND_HALF_SURE && last_third < LAST_THIRD_SHARE))
		return TM_GROWTH_GOES_ON;
	return TM_GROWTH_LEAK;
}

/* Births of the cohort of an age; the current window, age 0, is not in the series. */
static double births_at(const struct tm_growth_input *in, size_t age)
{
	return age >= 1 && age <= in->windows ? in->births[in->windows - age] : 0;
}

/* Share of the objects in cohorts of ages [from, to) that is still alive. */
static double survival(const struct tm_growth_input *in, size_t from, size_t to)
{
	double born = 0, live = 0;

	for (size_t age = from; age < to && age <= in->windows; age++) {
		born += births_at(in, age);
		live += in->cohort[age];
	}
	return born > 0 ? live / born : 0;
}

/* The age from which the survival of the oldest cohorts is nearly reached. */
static size_t find_life(const struct tm_growth_input *in)
{
	size_t oldest = TM_GROWTH_COHORTS - 1;
	double plateau = survival(in, oldest - PLATEAU_COHORTS, oldest);
	size_t age = in->old_windows;

	while (age < oldest - PLATEAU_COHORTS &&
	       survival(in, age, age + 3) > PLATEAU_SLACK * plateau)
		age++;
	return age;
}

/*
 * Whether the oldest cohorts have a smaller share of survivors than those before: then objects
 * still die, and the site's sessions are just long. Compares the rates as Poisson counts, one-sided
 * at 5 %.
 */
static bool they_still_die(const struct tm_growth_input *in, struct tm_growth *g)
{
	size_t oldest = TM_GROWTH_COHORTS - 1, middle = oldest - PLATEAU_COHORTS;
	double young = 0, old = in->cohort[oldest], young_born = 0, old_born = in->births_before;

	for (size_t age = middle - PLATEAU_COHORTS; age < oldest; age++) {
		*(age < middle ? &young : &old) += in->cohort[age];
		*(age < middle ? &young_born : &old_born) += births_at(in, age);
	}
	for (size_t age = oldest; age <= in->windows; age++)
		old_born += births_at(in, age);
	g->still_die = 1;
	if (young <= 0 || young_born <= 0)
		return false;
	double scale = DECAY_SLACK * old_born / young_born;
	g->still_die = old * DECAY_SLACK / (young * scale);
	return young * scale - old > Z_DECAY * sqrt(young * scale * scale + old);
}

static bool ages_hold(const struct tm_growth_input *in, struct tm_growth *g)
{
	size_t from = (g->life_windows < FILL_FROM_MAX ? g->life_windows : FILL_FROM_MAX) + 1;
	size_t to = TM_GROWTH_COHORTS - 1; /* older objects form one cohort, which is no use here */
	double births = 0, expected = 0, filled = 0, counted = 0, survivors = 0;

	for (size_t age = from; age < to; age++) {
		survivors += in->cohort[age];
		births += births_at(in, age);
	}
	g->survivors = survivors;
	for (size_t age = from; age < to && births > 0; age++) {
		double share = births_at(in, age) / births;

		expected += 1 - exp(-survivors * share);
		filled += in->cohort[age] > 0;
		counted += share > 0;
	}
	g->cohort_fill = counted > 0 ? filled / counted : 0;
	return !they_still_die(in, g) && survivors >= SURVIVORS_MIN &&
	       filled >= FILL_SHARE * expected;
}

/* Moving average over the last "span" values. */
static void smooth(const double *x, size_t n, size_t span, double *ret_mean)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++) {
		sum += x[i];
		if (i >= span)
			sum -= x[i - span];
		ret_mean[i] = sum / (double)(i < span ? i + 1 : span);
	}
}

static double partial_of(const double *old, const double *x, const double *time, size_t n)
{
	double ot = tm_trend_correlation(old, time, n);
	double ox = tm_trend_correlation(old, x, n);
	double xt = tm_trend_correlation(x, time, n);
	double rest = (1 - ox * ox) * (1 - xt * xt);

	if (ox < EXPLAINS_RHO || rest <= 0)
		return ot;
	return (ot - ox * xt) / sqrt(rest);
}

static bool traffic_explains(const struct tm_growth_input *in, struct tm_growth *g)
{
	static const size_t span[] = {1, 4, 16, 60};
	double time[TM_TREND_MAX], x[TM_TREND_MAX];

	for (size_t i = 0; i < in->windows; i++)
		time[i] = (double)i;
	g->rho_births = tm_trend_correlation(in->old, in->births, in->windows);
	g->partial = 1;
	for (size_t i = 0; i < TM_ARRAY_LEN(span); i++) {
		smooth(in->births, in->windows, span[i], x);
		g->partial = fmin(g->partial, partial_of(in->old, x, time, in->windows));
	}
	if (in->traffic)
		g->partial = fmin(g->partial, partial_of(in->old, in->traffic, time, in->windows));
	return g->partial < PARTIAL_MIN;
}

/*
 * Whether the number rose an eighth of the windows ago already; with fewer windows, hence a less
 * strict limit.
 */
static bool was_so_before(const struct tm_growth_input *in, const struct tm_growth *g)
{
	struct tm_growth before = {.life_windows = g->life_windows};
	enum tm_growth_stage stage = test_rise(in, in->windows - in->windows / 8, &before);

	return stage == TM_GROWTH_TOO_FEW_WINDOWS ||
	       (before.trend.p < P_ROSE && before.trend.slope > 0);
}

void tm_growth_test(const struct tm_growth_input *in, struct tm_growth *ret_growth)
{
	struct tm_growth *g = ret_growth;

	*g = (struct tm_growth){.trend = {.p = 1, .variance_factor = 1},
				.bytes_per_object = in->bytes_per_object};
	if (in->windows < TM_GROWTH_WINDOWS_MIN) {
		g->stage = TM_GROWTH_TOO_FEW_WINDOWS;
		return;
	}
	g->life_windows = find_life(in);
	g->stage = test_rise(in, in->windows, g);
	if (g->stage != TM_GROWTH_LEAK)
		return;
	if (!ages_hold(in, g))
		g->stage = TM_GROWTH_AGES;
	else if (traffic_explains(in, g))
		g->stage = TM_GROWTH_TRAFFIC;
	else if (!was_so_before(in, g))
		g->stage = TM_GROWTH_PERSISTS;
}

const char *tm_growth_stage_word(enum tm_growth_stage stage)
{
	switch (stage) {
	case TM_GROWTH_TOO_FEW_WINDOWS: return "too few windows to decide";
	case TM_GROWTH_RISES: return "old objects do not rise";
	case TM_GROWTH_MATTERS: return "rises by less than the floor";
	case TM_GROWTH_GOES_ON: return "the second half rises no more: warm-up";
	case TM_GROWTH_AGES: return "survivors come from few moments";
	case TM_GROWTH_TRAFFIC: return "goes with the traffic";
	case TM_GROWTH_PERSISTS: return "new: not seen for long enough";
	case TM_GROWTH_LEAK: return "growing";
	}
	return "unknown";
}
