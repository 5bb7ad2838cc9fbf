/* SPDX-License-Identifier: MIT */
/*
 * trend: does a series rise? Rank statistics, which assume no distribution. Pure.
 *
 * Mann-Kendall test with correction for ties and, since neighbouring counts are correlated, with
 * the variance of Hamed and Rao (J. Hydrology 204, 1998): autocorrelations of the ranks of the
 * detrended series that differ from 0 at the 5 % level widen it. The slope is the Theil-Sen
 * estimator, with the interval that belongs to the same variance.
 */
#ifndef TM_TOOLS_TREND_H
#define TM_TOOLS_TREND_H

#include "shim/base/attrs.h"

#define TM_TREND_MAX 128u /* most values; of a longer series the last ones are used */
#define TM_TREND_MIN 8u   /* with fewer there is no verdict: p is 1 */

struct tm_trend {
	double z;
	double p;         /* one-sided p-value */
	double slope;     /* per step */
	double slope_low; /* 95 % interval */
	double slope_high;
	double variance_factor; /* 1: values are independent */
};

/* For a series that does not rise (p > .05) the slope is 0. */
void tm_trend_test(const double *y, size_t n, struct tm_trend *ret_trend);

/* Upper tail probability of the normal distribution. */
double tm_trend_tail(double z);

/* Spearman's rank correlation of n pairs; 0 if one of the series is constant. */
double tm_trend_correlation(const double *x, const double *y, size_t n);

/*
 * Benjamini and Hochberg: q[i] is the smallest false discovery rate at which i counts as a
 * discovery. Returns 0 or -ENOMEM.
 */
int tm_trend_false_discovery(const double *p, size_t n, double *ret_q);

#endif
