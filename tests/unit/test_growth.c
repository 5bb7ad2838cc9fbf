/* SPDX-License-Identifier: MIT */
/* growth: simulated call sites; innocent ones are not flagged, leaking ones are. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "tests/unit/growth_patterns.h"

static bool is_flagged(struct objects *o, enum pattern p, size_t windows, unsigned seed)
{
	static struct site s;
	struct random r = {(uint64_t)p * 1000003 + seed * 7919u + 1};
	struct tm_growth growth;

	simulate(o, &r, p, windows);
	count(&s, o, windows);

	struct tm_growth_input input = {
		.windows = windows,
		.old = s.old,
		.births = s.births,
		.old_windows = OLD_WINDOWS,
		.bytes_per_object = 1000,
	};
	memcpy(input.cohort, s.cohort, sizeof(s.cohort));
	tm_growth_test(&input, &growth);
	return growth.stage == TM_GROWTH_LEAK;
}

/* Share of so many seeds. */
static double flagged(enum pattern p, size_t windows)
{
	const char *more = getenv("TM_LONG");
	unsigned seeds = more && *more ? 2000 : 120, n = 0;
	struct objects objects = {0};

	for (unsigned seed = 0; seed < seeds; seed++)
		n += is_flagged(&objects, p, windows, seed);
	free(objects.span);
	return (double)n / seeds;
}

/* No floor of bytes helps here. 2 % allowed, and a standard deviation of what 120 seeds can say. */
static void spares(enum pattern p)
{
	for (size_t windows = 48; windows <= 120; windows += 36) {
		double share = flagged(p, windows);

		cr_expect(share <= 0.02 + 0.013, "%s: %.3f of %zu windows", pattern_name[p], share,
			  windows);
	}
}

static void finds(enum pattern p, size_t windows, double power)
{
	double share = flagged(p, windows);

	cr_expect(share >= power - 0.035, "%s: %.3f after %zu windows, promised %.2f",
		  pattern_name[p], share, windows, power);
}

Test(growth, spares_a_steady_site)
{
	spares(STEADY);
}
Test(growth, spares_day_and_night)
{
	spares(DIURNAL);
}
Test(growth, spares_a_cache_that_warms_up)
{
	spares(WARM_UP);
}
Test(growth, spares_an_lru_cache_that_fills)
{
	spares(LRU_FILLING);
}
Test(growth, spares_long_sessions)
{
	spares(LONG_SESSIONS);
}
Test(growth, spares_a_ramp_of_traffic)
{
	spares(RAMP);
}
Test(growth, spares_what_is_loaded_once)
{
	spares(ONE_SHOT);
}
Test(growth, spares_a_vector_that_doubles)
{
	spares(DOUBLING_VECTOR);
}
Test(growth, finds_one_object_in_a_hundred)
{
	finds(LEAK_1_PERCENT, 48, 0.83);
	finds(LEAK_1_PERCENT, 90, 0.88);
}
Test(growth, finds_one_object_in_ten)
{
	finds(LEAK_10_PERCENT, 48, 1);
	finds(LEAK_10_PERCENT, 90, 1);
}
Test(growth, finds_three_in_a_hundred_by_day_and_night)
{
	finds(LEAK_3_PERCENT_DIURNAL, 48, 0.85);
	finds(LEAK_3_PERCENT_DIURNAL, 90, 0.93);
}
Test(growth, finds_one_request_in_a_thousand)
{
	finds(LEAK_1_IN_1000, 90, 0.7);
}

Test(growth, says_nothing_after_few_windows)
{
	struct objects objects = {0};

	cr_expect(!is_flagged(&objects, LEAK_10_PERCENT, TM_GROWTH_WINDOWS_MIN - 1, 1));
	free(objects.span);
}

Test(trend, agrees_with_the_formula)
{
	double y[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
	struct tm_trend t;

	/* S = 45, variance 10 * 9 * 25 / 18 = 125; what is left when the slope is out has one rank. */
	tm_trend_test(y, 10, &t);
	cr_expect(fabs(t.z - 44 / sqrt(125)) < 1e-9, "z %f", t.z);
	cr_expect(fabs(t.slope - 1) < 1e-9 && fabs(t.slope_low - 1) < 1e-9);
	cr_expect(fabs(t.variance_factor - 1) < 1e-9);
}

Test(trend, counts_ties_once)
{
	double y[10] = {1, 1, 1, 1, 1, 2, 2, 2, 2, 2};
	struct tm_trend t;

	/* S = 25; the variance less two groups of five: (10*9*25 - 2 * 5*4*15) / 18 = 91.7 */
	tm_trend_test(y, 10, &t);
	cr_expect(fabs(t.z * sqrt(t.variance_factor) - 24 / sqrt(1650.0 / 18)) < 1e-9);
}

Test(trend, says_nothing_of_a_constant)
{
	double y[20] = {0};
	struct tm_trend t;

	tm_trend_test(y, 20, &t);
	cr_expect(t.p == 0.5 || t.p == 1, "p %f", t.p);
	cr_expect(t.slope == 0);
	tm_trend_test(y, 3, &t);
	cr_expect(t.p == 1);
}

/* The example of Benjamini and Hochberg's paper of 1995: at 5 % the first four are found. */
Test(trend, holds_back_false_discoveries)
{
	double p[15] = {.0001, .0004, .0019, .0095, .0201, .0278, .0298, .0344,
			.0459, .3240, .4262, .5719, .6528, .7590, 1.0};
	double q[15];
	size_t found = 0;

	cr_assert(tm_trend_false_discovery(p, 15, q) == 0);
	for (size_t i = 0; i < 15; i++)
		found += q[i] <= 0.05;
	cr_expect(found == 4, "%zu", found);
}

Test(trend, ranks_correlate)
{
	double x[5] = {1, 2, 3, 4, 5}, up[5] = {10, 20, 30, 40, 1000}, down[5] = {5, 4, 3, 2, 1};

	cr_expect(fabs(tm_trend_correlation(x, up, 5) - 1) < 1e-12);
	cr_expect(fabs(tm_trend_correlation(x, down, 5) + 1) < 1e-12);
}
