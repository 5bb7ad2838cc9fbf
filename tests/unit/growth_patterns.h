/* SPDX-License-Identifier: MIT */
/*
 * Call sites as they are in servers, innocent and leaking, simulated object by object: what the
 * target would count of them, window by window. Seeded, so that a failure can be repeated.
 */
#ifndef TM_TEST_GROWTH_PATTERNS_H
#define TM_TEST_GROWTH_PATTERNS_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/analysis/growth.h"

enum pattern {
	STEADY,
	DIURNAL,
	WARM_UP,
	LRU_FILLING,
	LONG_SESSIONS,
	RAMP,
	ONE_SHOT,
	DOUBLING_VECTOR,
	INNOCENTS,
	LEAK_1_PERCENT = INNOCENTS,
	LEAK_10_PERCENT,
	LEAK_3_PERCENT_DIURNAL,
	LEAK_1_IN_1000,
	PATTERNS,
};

static const char *const pattern_name[PATTERNS] = {
	"steady",        "diurnal",      "warm-up cache",     "LRU filling",
	"long sessions", "traffic ramp", "one-shot load",     "doubling vector",
	"leak 1 %",      "leak 10 %",    "leak 3 %, diurnal", "leak 1 in 1000",
};

struct site {
	size_t windows;
	double old[TM_TREND_MAX], births[TM_TREND_MAX];
	double cohort[TM_GROWTH_COHORTS];
};

struct random {
	uint64_t state;
};

static double uniform(struct random *r)
{
	r->state += UINT64_C(0x9e3779b97f4a7c15);
	uint64_t z = r->state;
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (double)((z ^ z >> 31) >> 11) / 9007199254740992.0;
}

static double between(struct random *r, double low, double high)
{
	return low + (high - low) * uniform(r);
}

static double exponential(struct random *r, double mean)
{
	return -mean * log(1 - uniform(r));
}

static double normal(struct random *r)
{
	return sqrt(-2 * log(1 - uniform(r))) * cos(6.283185307179586 * uniform(r));
}

static size_t poisson(struct random *r, double mean)
{
	double limit, product = 1;
	size_t n = 0;

	if (mean > 60) {
		double x = mean + sqrt(mean) * normal(r) + 0.5;
		return x < 0 ? 0 : (size_t)x;
	}
	for (limit = exp(-mean); (product *= uniform(r)) > limit;)
		n++;
	return n;
}

/* Objects of a run, each with its birth and death in windows. */
struct objects {
	float (*span)[2];
	size_t n, room;
};

static void add(struct objects *o, double birth, double death)
{
	if (o->n == o->room) {
		o->room = o->room ? 2 * o->room : 1024;
		o->span = realloc(o->span, o->room * sizeof(*o->span));
	}
	o->span[o->n][0] = (float)birth;
	o->span[o->n++][1] = (float)death;
}

#define FOR_EVER 1e9
#define OLD_WINDOWS 8u

/* Things with keys that are looked up and kept: all of them, or those used last. */
static void fill_cache(struct objects *o, struct random *r, double windows, size_t keys,
		       size_t capacity, double rate)
{
	size_t *seen = calloc(keys, sizeof(*seen)); /* object + 1 */
	double *used = calloc(keys, sizeof(*used));
	size_t held = 0;

	for (double t = exponential(r, 1 / rate); t < windows; t += exponential(r, 1 / rate)) {
		size_t key = (size_t)(uniform(r) * (double)keys);

		used[key] = t;
		if (seen[key])
			continue;
		if (held == capacity) {
			size_t oldest = keys;

			for (size_t k = 0; k < keys; k++)
				if (seen[k] && (oldest == keys || used[k] < used[oldest]))
					oldest = k;
			o->span[seen[oldest] - 1][1] = (float)t;
			seen[oldest] = 0;
			held--;
		}
		add(o, t, FOR_EVER);
		seen[key] = o->n;
		held++;
	}
	free(seen);
	free(used);
}

static void live_and_die(struct objects *o, struct random *r, enum pattern p, size_t windows)
{
	double rate = between(r, 20, 300), phase = between(r, 0, 6.28), more = between(r, 3, 10);
	double life = between(r, 0.2, 4), leak = 0;

	if (p == LONG_SESSIONS)
		life = between(r, 4, 12);
	if (p == LEAK_1_PERCENT)
		leak = 0.01;
	if (p == LEAK_10_PERCENT)
		leak = 0.1;
	if (p == LEAK_3_PERCENT_DIURNAL)
		leak = 0.03;
	if (p == LEAK_1_IN_1000) {
		leak = 0.001;
		rate = between(r, 1000, 3000);
	}
	for (size_t w = 0; w < windows; w++) {
		double now = rate;

		if (p == DIURNAL || p == LEAK_3_PERCENT_DIURNAL)
			now *= 1 + 0.8 * sin((double)w * 6.283 / 24 + phase);
		if (p == RAMP)
			now *= 1 + (more - 1) * (double)w / (double)windows;
		for (size_t n = poisson(r, now); n > 0; n--) {
			double birth = (double)w + uniform(r);
			bool stays = uniform(r) < leak;

			add(o, birth, stays ? FOR_EVER : birth + exponential(r, life));
		}
	}
}

static void simulate(struct objects *o, struct random *r, enum pattern p, size_t windows)
{
	double all = (double)windows;

	o->n = 0;
	if (p == WARM_UP) {
		size_t keys = (size_t)between(r, 200, 3000);

		fill_cache(o, r, all, keys, keys, (double)keys / between(r, 3, 10));
		return;
	}
	if (p == LRU_FILLING) {
		size_t capacity = (size_t)between(r, 200, 1000);

		fill_cache(o, r, all, 5 * capacity, capacity,
			   (double)capacity / (all * between(r, 0.1, 0.5)));
		return;
	}
	if (p == ONE_SHOT) {
		for (size_t n = (size_t)between(r, 100, 5000); n > 0; n--)
			add(o, between(r, 0, 3), FOR_EVER);
	}
	if (p == DOUBLING_VECTOR) {
		double rate = between(r, 20, 300), last = 0;

		for (double size = 8; size < rate * all; size *= 2) {
			add(o, last, size / rate);
			last = size / rate;
		}
		add(o, last, FOR_EVER);
		return;
	}
	live_and_die(o, r, p, windows);
}

/* What the target counts: TM_LEDGER_COHORTS ages, old is older than eight windows. */
static void count(struct site *s, const struct objects *o, size_t windows)
{
	memset(s, 0, sizeof(*s));
	s->windows = windows;
	for (size_t i = 0; i < o->n; i++) {
		double birth = o->span[i][0], death = o->span[i][1];
		size_t w = (size_t)birth, age = windows - w;

		if (w >= windows)
			continue;
		s->births[w]++;
		if (death > (double)windows)
			s->cohort[age < TM_GROWTH_COHORTS ? age : TM_GROWTH_COHORTS - 1]++;
		for (size_t end = w + 1 + OLD_WINDOWS; end < windows && death > (double)end + 1;
		     end++)
			s->old[end]++;
	}
}

#endif
