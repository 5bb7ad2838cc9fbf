/* SPDX-License-Identifier: MIT */
#include "tools/analysis/trend.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PAIRS_MAX (TM_TREND_MAX * (TM_TREND_MAX - 1) / 2)
#define Z_95 1.959964
/* With a p above this even for independent values, sorting all slopes is not worth it. */
#define P_HOPELESS 0.05

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

double tm_trend_tail(double z)
{
	return 0.5 * erfc(z / sqrt(2.0));
}

struct placed {
	double value;
	size_t at;
};

static int by_value(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;

	return x->value < y->value ? -1 : x->value > y->value;
}

/* Mid-ranks, 1..n. */
static void rank(const double *y, size_t n, double *ret_rank)
{
	struct placed sorted[TM_TREND_MAX];

	for (size_t i = 0; i < n; i++)
		sorted[i] = (struct placed){y[i], i};
	qsort(sorted, n, sizeof(*sorted), by_value);
	for (size_t i = 0; i < n;) {
		size_t end = i;

		while (end < n && sorted[end].value == sorted[i].value)
			end++;
		for (size_t k = i; k < end; k++)
			ret_rank[sorted[k].at] = (double)(i + end + 1) / 2;
		i = end;
	}
}

/* Var(S) of independent values: "n(n-1)(2n+5)/18" less a correction for ties. */
static double variance_of_ties(const double *y, size_t n)
{
	double sorted[TM_TREND_MAX];
	double count = (double)n;
	double variance = count * (count - 1) * (2 * count + 5);

	memcpy(sorted, y, n * sizeof(*y));
	qsort(sorted, n, sizeof(*sorted), ascending);
	for (size_t i = 0; i < n;) {
		size_t end = i;

		while (end < n && sorted[end] == sorted[i])
			end++;
		double t = (double)(end - i);
		variance -= t * (t - 1) * (2 * t + 5);
		i = end;
	}
	return variance / 18;
}

/* Factor by which correlated neighbours widen the variance; never less than 1. */
static double hamed_rao(const double *y, size_t n, double slope)
{
	double detrended[TM_TREND_MAX], r[TM_TREND_MAX];
	double mean = ((double)n + 1) / 2, square = 0, sum = 0;
	double count = (double)n;

	for (size_t i = 0; i < n; i++)
		detrended[i] = y[i] - slope * (double)i;
	rank(detrended, n, r);
	for (size_t i = 0; i < n; i++)
		square += (r[i] - mean) * (r[i] - mean);
	if (square == 0)
		return 1;
	for (size_t lag = 1; lag + 2 < n; lag++) {
		double product = 0, left = (double)(n - lag);

		for (size_t i = 0; i + lag < n; i++)
			product += (r[i] - mean) * (r[i + lag] - mean);
		double rho = product / square;
		if (fabs(rho) > Z_95 / sqrt(count))
			sum += left * (left - 1) * (left - 2) * rho;
	}
	return fmax(1, 1 + 2 * sum / (count * (count - 1) * (count - 2)));
}

void tm_trend_test(const double *y, size_t n, struct tm_trend *ret_trend)
{
	double slopes[PAIRS_MAX];
	size_t pairs = 0;
	double s = 0;

	*ret_trend = (struct tm_trend){.p = 1, .variance_factor = 1};
	if (n > TM_TREND_MAX) {
		y += n - TM_TREND_MAX;
		n = TM_TREND_MAX;
	}
	if (n < TM_TREND_MIN)
		return;
	for (size_t i = 0; i < n; i++) {
		for (size_t k = i + 1; k < n; k++)
			s += (y[k] > y[i]) - (y[k] < y[i]);
	}
	if (s <= 0)
		return;
	double independent = sqrt(variance_of_ties(y, n));
	ret_trend->z = (s - 1) / independent;
	ret_trend->p = tm_trend_tail(ret_trend->z);
	if (ret_trend->p > P_HOPELESS)
		return;
	for (size_t i = 0; i < n; i++) {
		for (size_t k = i + 1; k < n; k++) {
			slopes[pairs++] = (y[k] - y[i]) / (double)(k - i);
		}
	}
	qsort(slopes, pairs, sizeof(*slopes), ascending);
	ret_trend->slope = (slopes[(pairs - 1) / 2] + slopes[pairs / 2]) / 2;
	ret_trend->variance_factor = hamed_rao(y, n, ret_trend->slope);

	double deviation = independent * sqrt(ret_trend->variance_factor);
	ret_trend->z = (s - 1) / deviation;
	ret_trend->p = tm_trend_tail(ret_trend->z);
	double half = Z_95 * deviation, count = (double)pairs;
	double low = floor((count - half) / 2), high = ceil((count + half) / 2);
	ret_trend->slope_low = slopes[low < 0 ? 0 : (size_t)low];
	ret_trend->slope_high = slopes[high >= count ? pairs - 1 : (size_t)high];
}

double tm_trend_correlation(const double *x, const double *y, size_t n)
{
	double a[TM_TREND_MAX], b[TM_TREND_MAX];
	double mean = ((double)n + 1) / 2, ab = 0, aa = 0, bb = 0;

	if (n > TM_TREND_MAX || n < 3)
		return 0;
	rank(x, n, a);
	rank(y, n, b);
	for (size_t i = 0; i < n; i++) {
		ab += (a[i] - mean) * (b[i] - mean);
		aa += (a[i] - mean) * (a[i] - mean);
		bb += (b[i] - mean) * (b[i] - mean);
	}
	return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : 0;
}

struct ranked {
	double p;
	size_t at;
};

static int by_p(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->p != y->p)
		return x->p < y->p ? -1 : 1;
	return x->at < y->at ? -1 : 1;
}

int tm_trend_false_discovery(const double *p, size_t n, double *ret_q)
{
	struct ranked *order = malloc((n ? n : 1) * sizeof(*order));
	double smallest = 1;

	if (order == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		order[i] = (struct ranked){p[i], i};
	qsort(order, n, sizeof(*order), by_p);
	for (size_t i = n; i-- > 0;) {
		smallest = fmin(smallest, order[i].p * (double)n / (double)(i + 1));
		ret_q[order[i].at] = smallest;
	}
	free(order);
	return 0;
}
