/* SPDX-License-Identifier: MIT */
/*
 * trend: does a series rise? Rank statistics that assume no distribution. Pure.
 *
 * Mann-Kendall with the correction for ties and, as neighbours in a series of counts resemble each
 * other, with the variance of Hamed and Rao (J. Hydrology 204, 1998): autocorrelations of the ranks
 * of the detrended series that differ from 0 at 5 % widen it. The slope is Theil and Sen's, its
 * interval the one that belongs to the same variance.
 */
#ifndef TM_TOOLS_TREND_H
#define TM_TOOLS_TREND_H

#include "shim/base/attrs.h"

#define TM_TREND_MAX 128u /* values at most; of a longer series the last ones are taken */
#define TM_TREND_MIN 8u   /* with fewer nothing is said: p is 1 */

struct tm_trend {
	double z;
	double p;         /* one-sided: that chance alone rises so */
	double slope;     /* per step */
	double slope_low; /* 95 % interval */
	double slope_high;
	double variance_factor; /* 1: neighbours are independent */
};

/* Of a series that does not rise (p > .05) no slope is told: it is 0. */
void tm_trend_test(const double *y, size_t n, struct tm_trend *ret_trend);

/* Upper tail of the normal distribution. */
double tm_trend_tail(double z);

/* Spearman's rank correlation of n pairs; 0 where one of the series is constant. */
double tm_trend_correlation(const double *x, const double *y, size_t n);

/*
 * Benjamini and Hochberg: q[i] is the smallest rate of false discoveries at which i would be one.
 * 0, or -ENOMEM.
 */
int tm_trend_false_discovery(const double *p, size_t n, double *ret_q);

#endif
