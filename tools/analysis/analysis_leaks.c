/* SPDX-License-Identifier: MIT */
/*
 * Leaks: sites that grow, sites with unreachable blocks, and what was left at a clean exit. See
 * analysis.h.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/fmt.h"
#include "tools/analysis/acknowledged.h"
#include "tools/analysis/analysis.h"
#include "tools/analysis/suppressions.h"

/* For windows of one minute; scaled for other lengths. */
#define FLOOR_BYTES_PER_H 65536.0
#define FLOOR_RSS_PER_H 1e-4
#define WINDOWS_PER_H 60.0
#define WINDOW_MS 60000.0
#define MS_PER_H 3600000.0
/* Unreachable blocks of a site are reported from this many, or this many bytes, on. */
#define UNREACHABLE_OBJECTS 3u
#define UNREACHABLE_BYTES 65536u
/*
 * Blocks left at exit are reported from this many on, and, after a run of several windows, if they
 * were born in three quarters of the windows.
 */
#define EXIT_OBJECTS 8u
#define EXIT_WINDOWS 8u
#define EXIT_FILL 0.75
/* With fewer samples their different stacks tell nothing. */
#define HINT_SAMPLES 8u
/* A site that rises but is no leak is watched if p is below this. */
#define P_WATCH 1e-3

/* --- growing ---------------------------------------------------------------------------------- */

/* The series of a record, oldest window first. */
struct series {
	double old[TM_TREND_MAX], births[TM_TREND_MAX], sessions[TM_TREND_MAX],
		tokens[TM_TREND_MAX];
	size_t windows;
	bool has_sessions, has_tokens;
	/* actual length: a slow or late census makes windows longer than requested */
	double window_ms;
};

static void read_series(const struct tm_ledger *l, const struct tm_ledger_cohorts *c,
			struct series *s)
{
	const struct tm_ledger_window *window = tm_ledger_at(l, TM_LEDGER_WINDOWS_AT);
	uint32_t first = c->first_epoch;
	uint64_t ms = 0, whole = 0;

	memset(s, 0, sizeof(*s));
	s->window_ms = l->header.window_ms ? l->header.window_ms : WINDOW_MS;
	if (first == 0 || c->last_epoch < first)
		return;
	if (c->last_epoch - first >= TM_TREND_MAX)
		first = c->last_epoch - TM_TREND_MAX + 1;
	s->windows = c->last_epoch - first + 1;
	for (size_t i = 0; i < s->windows; i++) {
		uint32_t epoch = first + (uint32_t)i, at = epoch % TM_LEDGER_WINDOWS;
		/* Record n of the windows belongs to epoch n + 1. */
		const struct tm_ledger_window *w = &window[(epoch - 1) % TM_LEDGER_WINDOWS];

		s->old[i] = c->ring[at].old;
		s->births[i] = c->ring[at].births;
		if (w->seq != epoch)
			continue;
		if (w->ended_ms > w->begun_ms) {
			ms += w->ended_ms - w->begun_ms;
			whole++;
		}
		s->sessions[i] = w->sessions;
		s->tokens[i] = w->tokens;
		s->has_sessions |= w->sessions != 0;
		s->has_tokens |= w->tokens != 0;
	}
	if (whole)
		s->window_ms = (double)ms / (double)whole;
}

static double rss_of(const struct tm_ledger *l)
{
	return l->counters.rss_bytes ? (double)l->counters.rss_bytes : (double)l->total.slot_bytes;
}

struct tm_growth *tm_analysis_test(struct tm_analysis *a, const struct tm_ledger_cohorts *c,
				   double *ret_window_ms)
{
	struct tm_growth *g = tm_document_alloc(a->doc, sizeof(*g));
	struct tm_growth_input in = {.old_windows = a->ledger->header.old_windows};
	struct series s;
	double births = 0;

	read_series(a->ledger, c, &s);
	in.windows = s.windows;
	in.old = s.old;
	in.births = s.births;
	in.traffic = s.has_sessions ? s.sessions : NULL;
	in.windows_before = c->last_epoch - s.windows;
	for (size_t i = 0; i < s.windows; i++)
		births += s.births[i];
	in.births_before = (double)c->objects > births ? (double)c->objects - births : 0;
	/* The first cohort is the window that has just ended, which growth.h counts as age 1. */
	for (size_t i = 0; i + 1 < TM_GROWTH_COHORTS; i++)
		in.cohort[i + 1] = c->cohort[i];
	in.cohort[TM_GROWTH_COHORTS - 1] += c->cohort[TM_LEDGER_COHORTS - 1];
	in.bytes_per_object = c->live_objects ? (double)c->live_bytes / (double)c->live_objects : 0;
	in.floor_bytes_per_window =
		fmax(FLOOR_BYTES_PER_H, FLOOR_RSS_PER_H * rss_of(a->ledger)) / WINDOWS_PER_H;
	tm_growth_test(&in, g);
	*ret_window_ms = s.window_ms;
	return g;
}

static void test_all(struct tm_analysis *a)
{
	const struct tm_ledger *l = a->ledger;
	struct tm_ledger_cohorts c;
	double window_ms;

	for (uint32_t i = 0; i < l->header.cohort_sites; i++) {
		uint64_t at = TM_LEDGER_COHORTS_AT + i * sizeof(c);

		memcpy(&c, tm_ledger_at(l, at), sizeof(c));
		if (c.site == 0 || c.gpu_row != 0)
			continue;
		if (!tm_ledger_whole(l, at, &c, sizeof(c),
				     offsetof(struct tm_ledger_cohorts, seq))) {
			a->ledger->torn++;
			continue;
		}
		const struct tm_analysis_key *key = tm_analysis_key(a, c.site, c.height);
		if (key->address == c.site && key->height == c.height)
			a->growth[key->site] = tm_analysis_test(a, &c, &window_ms);
	}
}

/*
 * Computes q values over all tested sites; leaks are those below a false discovery rate of one in a
 * hundred.
 */
static void hold_back(struct tm_analysis *a, double *ret_q)
{
	size_t n = 0, count = a->doc->sites.count;
	double *p = tm_document_alloc(a->doc, (count + 1) * sizeof(*p));
	double *q = tm_document_alloc(a->doc, (count + 1) * sizeof(*q));

	for (size_t i = 0; i < count; i++) {
		if (a->growth[i] && a->growth[i]->stage != TM_GROWTH_TOO_FEW_WINDOWS)
			p[n++] = a->growth[i]->trend.p;
	}
	if (tm_trend_false_discovery(p, n, q) != 0)
		return;
	n = 0;
	for (size_t i = 0; i < count; i++) {
		ret_q[i] = 1;
		if (a->growth[i] && a->growth[i]->stage != TM_GROWTH_TOO_FEW_WINDOWS)
			ret_q[i] = q[n++];
	}
}

/* --- unreachable, exit ------------------------------------------------------------------------ */

static bool is_unreachable(const struct tm_ledger_site *s)
{
	return s->twice.objects >= UNREACHABLE_OBJECTS || s->twice.bytes >= UNREACHABLE_BYTES;
}

/* Whether survivors come from most of the run, not just its start or end. */
static bool is_left_at_exit(const struct tm_ledger *l, const struct tm_ledger_site *s)
{
	double windows = l->header.epoch < 255 ? l->header.epoch : 255, filled = 0;

	if (l->header.clean_exit == 0 || s->address == 0 || s->live_objects < EXIT_OBJECTS)
		return false;
	if (windows < EXIT_WINDOWS)
		return true;
	for (size_t i = 0; i < TM_ARRAY_LEN(s->epochs); i++)
		filled += __builtin_popcountll(s->epochs[i]);
	return filled >= EXIT_FILL * windows * (1 - exp(-(double)s->live_objects / windows));
}

static bool is_watched(const struct tm_analysis *a, size_t site)
{
	const struct tm_ledger_site *s = &a->ledger->sites[site];
	const struct tm_growth *g = a->growth[site];

	if (s->once.objects >= UNREACHABLE_OBJECTS || s->once.bytes >= UNREACHABLE_BYTES)
		return true;
	return g && g->stage > TM_GROWTH_MATTERS && g->trend.p < P_WATCH;
}

void tm_analysis_find_leaks(struct tm_analysis *a)
{
	size_t n = a->doc->sites.count;

	a->growth = tm_document_alloc(a->doc, (n + 1) * sizeof(struct tm_growth *));
	test_all(a);
	for (size_t i = 0; i < n; i++) {
		const struct tm_ledger_site *s = &a->ledger->sites[i];

		if ((a->growth[i] && a->growth[i]->stage == TM_GROWTH_LEAK) || is_unreachable(s) ||
		    is_left_at_exit(a->ledger, s) || is_watched(a, i))
			a->wants_symbols[i] = 1;
	}
}

/* --- the list --------------------------------------------------------------------------------- */

/*
 * Objects left behind per mark (request or session): the rise in old objects, divided by the marks
 * in the windows of their birth, since traffic need not be even. NAN: there were no marks.
 */
static double left_by_each(const struct series *s, const double *marks, size_t old_windows)
{
	double sum = 0;

	if (s->windows < old_windows + 2)
		return NAN;
	for (size_t w = 1; w + old_windows < s->windows; w++)
		sum += marks[w];
	return sum > 0 ? (s->old[s->windows - 1] - s->old[old_windows]) / sum : NAN;
}

/* Reads the series of a site that was tested. */
static bool find_series(const struct tm_ledger *l, const struct tm_ledger_site *s,
			struct series *ret_series)
{
	const struct tm_ledger_cohorts *c = tm_ledger_at(l, TM_LEDGER_COHORTS_AT);
	uint32_t i = 0;

	while (i < l->header.cohort_sites &&
	       (c[i].site != s->address || c[i].height != s->height || c[i].gpu_row != 0))
		i++;
	if (i == l->header.cohort_sites)
		return false;
	read_series(l, &c[i], ret_series);
	return true;
}

static void add_series_figures(const struct tm_ledger *l, const struct series *series,
			       struct tm_doc_leak *leak)
{
	if (series->has_sessions) {
		leak->per_session = left_by_each(series, series->sessions, l->header.old_windows);
		leak->corr.requests =
			tm_trend_correlation(series->births, series->sessions, series->windows);
	}
	if (series->has_tokens) {
		leak->per_request = left_by_each(series, series->tokens, l->header.old_windows);
		leak->corr.tokens =
			tm_trend_correlation(series->births, series->tokens, series->windows);
	}
}

/* Bytes that became old within the recorded windows; what was old before them is not counted. */
static uint64_t grown_bytes(const struct series *s, double each)
{
	double more = s->windows ? s->old[s->windows - 1] - s->old[0] : 0;

	return more > 0 ? (uint64_t)(more * each) : 0;
}

static struct tm_doc_leak *add_leak(struct tm_analysis *a, size_t site,
				    enum tm_doc_leak_class class)
{
	struct tm_doc_leak *leak = tm_document_add(a->doc, TM_DOC_LEAKS);
	const struct tm_ledger_site *s = &a->ledger->sites[site];

	leak->rank = a->doc->leaks.count;
	leak->site = a->doc->sites.at[site].id;
	leak->class = class;
	leak->live_bytes = s->live_bytes;
	leak->live_objs = s->live_objects;
	leak->acknowledged = false;
	uint64_t samples;
	double share = tm_analysis_stack_share(a, site, &samples);
	if (share < 1 && samples >= HINT_SAMPLES)
		leak->hint = tm_document_format(
			a->doc,
			"its samples disagree: %.0f %% of %llu came through the stack shown, others elsewhere",
			100 * share, (unsigned long long)samples);
	if (a->ledger->header.scan_passes) {
		leak->scan.passes = a->ledger->header.scan_passes;
		leak->scan.threads_stopped = a->ledger->header.threads_stopped;
		leak->scan.threads_missed = a->ledger->header.threads_missed;
	}
	return leak;
}

static void say(struct tm_analysis *a, struct tm_doc_leak *leak, const char *text)
{
	tm_document_push_text(a->doc, &leak->evidence, text);
}

static void add_growing(struct tm_analysis *a, size_t site, double q)
{
	const struct tm_growth *g = a->growth[site];
	const struct tm_ledger_site *s = &a->ledger->sites[site];
	struct tm_doc_leak *leak = add_leak(a, site, TM_DOC_GROWING);
	/* Computed as of the last window: what grew may have been freed at the end. */
	double each = g->bytes_per_object, scale = each * WINDOWS_PER_H;
	struct series series;

	if (find_series(a->ledger, s, &series)) {
		scale = each * MS_PER_H / series.window_ms;
		add_series_figures(a->ledger, &series, leak);
		a->doc->sites.at[site].growth_bytes = grown_bytes(&series, each);
	}

	leak->p = g->trend.p;
	leak->q = q;
	leak->confidence = fmin(1 - q, TM_ANALYSIS_CONFIDENCE_MAX);
	leak->slope_bytes_per_h = g->trend.slope * scale;
	tm_document_push_real(a->doc, &leak->ci95, g->trend.slope_low * scale);
	tm_document_push_real(a->doc, &leak->ci95, g->trend.slope_high * scale);
	leak->cohort_fill = g->cohort_fill;
	say(a, leak,
	    tm_document_format(a->doc, "%.0f %% of old windows still hold objects",
			       g->cohort_fill * 100));
	say(a, leak,
	    tm_document_format(a->doc, "old ones rise by %.3g a window, in the second half by %.3g",
			       g->trend.slope, g->trend.slope * g->second_half));
	if (s->objects)
		say(a, leak,
		    tm_document_format(
			    a->doc, "%.0f %% of all allocated were freed",
			    100 - 100 * fmin(1, (double)s->live_objects / (double)s->objects)));
	if (!isnan(leak->per_session))
		say(a, leak,
		    tm_document_format(a->doc, "left by a session: %.3g (rank correlation %.2f)",
				       leak->per_session, leak->corr.requests));
	if (!isnan(leak->per_request))
		say(a, leak,
		    tm_document_format(a->doc, "by a step: %.3g (%.2f)", leak->per_request,
				       leak->corr.tokens));
	a->doc->sites.at[site].growth_bytes_per_h = leak->slope_bytes_per_h;
}

static void add_unreachable(struct tm_analysis *a, size_t site)
{
	const struct tm_ledger_site *s = &a->ledger->sites[site];
	struct tm_doc_leak *leak = add_leak(a, site, TM_DOC_UNREACHABLE);

	leak->indirect = s->indirect.bytes;
	leak->indirect_objs = s->indirect.objects;
	leak->direct = s->twice.bytes - s->indirect.bytes;
	leak->direct_objs = s->twice.objects - s->indirect.objects;
	/*
	 * A missed register or a hidden pointer may still hold them; missed threads lower the
	 * confidence.
	 */
	leak->confidence = a->ledger->header.scan_level != TM_LEDGER_SCAN_STOP ? 0.9
			   : a->ledger->header.threads_missed                  ? 0.95
							      : TM_ANALYSIS_CONFIDENCE_MAX;
	say(a, leak, "nothing pointed to them in two scans");
}

static void add_exit(struct tm_analysis *a, size_t site)
{
	struct tm_doc_leak *leak = add_leak(a, site, TM_DOC_EXIT);
	double windows = a->ledger->header.epoch;

	leak->direct = leak->live_bytes;
	leak->direct_objs = leak->live_objs;
	say(a, leak,
	    windows < EXIT_WINDOWS
		    ? "live after main and all exit handlers; the run was too short to see growth"
		    : "live after main and all exit handlers, from most of the run");
}

/*
 * Whether a site grew until the program ended and freed its blocks then: nothing stays, but it is
 * worth a note.
 */
static bool is_freed_at_end(const struct tm_analysis *a, size_t site)
{
	const struct tm_ledger_site *s = &a->ledger->sites[site];
	struct series series;

	return a->ledger->header.clean_exit && find_series(a->ledger, s, &series) &&
	       series.windows && (double)s->live_objects <= series.old[series.windows - 1] / 20;
}

static void add_freed(struct tm_analysis *a, size_t site)
{
	const struct tm_ledger_site *s = &a->ledger->sites[site];
	struct tm_doc_watch *w = tm_document_add(a->doc, TM_DOC_WATCH);
	const struct tm_growth *g = a->growth[site];
	struct series series;
	char rate[24];
	double per_h = 0;

	if (find_series(a->ledger, s, &series))
		per_h = g->trend.slope * g->bytes_per_object * MS_PER_H / series.window_ms;
	tm_fmt_bytes(rate, sizeof(rate), per_h > 0 ? (uint64_t)fmin(per_h, 1e18) : 0);
	w->site = a->doc->sites.at[site].id;
	w->class = TM_DOC_GROWING;
	w->note = tm_document_format(a->doc, "grew by %s/h while it ran, freed at the end", rate);
}

static void add_watch(struct tm_analysis *a, size_t site)
{
	const struct tm_ledger_site *s = &a->ledger->sites[site];
	const struct tm_growth *g = a->growth[site];
	struct tm_doc_watch *w = tm_document_add(a->doc, TM_DOC_WATCH);

	w->site = a->doc->sites.at[site].id;
	if (s->once.objects >= UNREACHABLE_OBJECTS || s->once.bytes >= UNREACHABLE_BYTES) {
		w->class = TM_DOC_UNREACHABLE;
		w->note = tm_document_format(a->doc, "%llu objects unreachable once, not twice",
					     (unsigned long long)s->once.objects);
		return;
	}
	w->class = TM_DOC_GROWING;
	w->note = tm_growth_stage_word(g->stage);
}

static bool is_runtime_only(const struct tm_document *doc, size_t site)
{
	const struct tm_doc_frame *f = tm_analysis_frame(doc, &doc->sites.at[site]);
	const char *path =
		f && f->module < doc->modules.count ? doc->modules.at[f->module].path : NULL;
	const char *name = path ? strrchr(path, '/') : NULL;

	return name && (strncmp(name, "/libc.so", 8) == 0 || strncmp(name, "/ld-linux", 9) == 0 ||
			strncmp(name, "/libstdc++.so", 13) == 0);
}

struct lists {
	struct tm_suppressions suppressions;
	struct tm_acknowledged acknowledged;
	uint64_t suppressed;
};

/* Order: growing ones by rate, then unreachable ones, then what was left at exit. */
static int by_weight(const void *a, const void *b)
{
	const struct tm_doc_leak *x = a, *y = b;
	double dx, dy;

	if (x->class != y->class)
		return x->class < y->class ? -1 : 1;
	dx = x->class == TM_DOC_GROWING ? x->slope_bytes_per_h : (double)(x->direct + x->indirect);
	dy = y->class == TM_DOC_GROWING ? y->slope_bytes_per_h : (double)(y->direct + y->indirect);
	if (dx != dy)
		return dx < dy ? 1 : -1;
	return strcmp(x->site, y->site);
}

/* Whether an acknowledged site is within its cap; it is listed under "watch" then. */
static bool is_excused(struct tm_analysis *a, struct lists *lists, size_t site)
{
	const struct tm_doc_site *s = &a->doc->sites.at[site];
	uint64_t cap;

	if (tm_suppressions_match(&lists->suppressions, a->doc, s)) {
		lists->suppressed++;
		return true;
	}
	if (!tm_acknowledged_find(&lists->acknowledged, s->id, &cap) || s->live_bytes > cap)
		return false;
	struct tm_doc_watch *w = tm_document_add(a->doc, TM_DOC_WATCH);
	w->site = s->id;
	w->note = tm_document_format(a->doc, "acknowledged up to %llu bytes",
				     (unsigned long long)cap);
	return true;
}

static void add_site(struct tm_analysis *a, struct lists *lists, size_t site, double q)
{
	const struct tm_ledger_site *s = &a->ledger->sites[site];
	const struct tm_growth *g = a->growth[site];
	bool grows = g && g->stage == TM_GROWTH_LEAK && q <= TM_ANALYSIS_FALSE_DISCOVERIES;
	bool lost = is_unreachable(s);
	bool left = is_left_at_exit(a->ledger, s) && !is_runtime_only(a->doc, site);

	if (grows && !lost && !left && is_freed_at_end(a, site)) {
		add_freed(a, site);
		return;
	}

	if (!grows && !lost && !left) {
		if (is_watched(a, site))
			add_watch(a, site);
		return;
	}
	if (is_excused(a, lists, site))
		return;
	if (lost)
		add_unreachable(a, site);
	if (grows)
		add_growing(a, site, q);
	if (left && !lost && !grows)
		add_exit(a, site);
}

static void project(struct tm_analysis *a)
{
	struct tm_doc_verdict *v = &a->doc->verdict;
	double sum = 0, low = 0, high = 0;
	double limit = (double)a->ledger->counters.limit_bytes;
	double room = limit - rss_of(a->ledger);

	for (size_t i = 0; i < a->doc->leaks.count; i++) {
		const struct tm_doc_leak *leak = &a->doc->leaks.at[i];

		if (leak->class != TM_DOC_GROWING)
			continue;
		sum += leak->slope_bytes_per_h;
		low += leak->ci95.at[0];
		high += leak->ci95.at[1];
	}
	v->growth_bytes_per_h = sum;
	if (sum <= 0)
		return;
	tm_document_push_real(a->doc, &v->growth_ci95, low);
	tm_document_push_real(a->doc, &v->growth_ci95, high);
	if (limit == 0 || room <= 0)
		return;
	v->limit_reached_h = room / sum;
	tm_document_push_real(a->doc, &v->limit_reached_ci95, room / high);
	tm_document_push_real(a->doc, &v->limit_reached_ci95, low > 0 ? room / low : INFINITY);
}

static void count_classes(struct tm_document *doc)
{
	uint64_t n[4] = {0};

	for (size_t i = 0; i < doc->leaks.count; i++)
		n[doc->leaks.at[i].class]++;
	for (size_t i = 0; i < doc->gpu.count; i++)
		for (size_t k = 0; k < doc->gpu.at[i].sites.count; k++)
			n[TM_DOC_GROWING] += doc->gpu.at[i].sites.at[k].growing;
	doc->verdict.growing = n[TM_DOC_GROWING];
	doc->verdict.unreachable = n[TM_DOC_UNREACHABLE];
	doc->verdict.at_exit = n[TM_DOC_EXIT];
	doc->verdict.watch = doc->watch.count;
}

void tm_analysis_judge_leaks(struct tm_analysis *a)
{
	struct tm_document *doc = a->doc;
	struct lists lists = {{0}, {0}, 0};
	double *q = tm_document_alloc(doc, (doc->sites.count + 1) * sizeof(*q));

	hold_back(a, q);
	tm_suppressions_read(&lists.suppressions, a->options->suppressions);
	tm_acknowledged_read(&lists.acknowledged);
	for (size_t i = 0; i < doc->sites.count; i++)
		add_site(a, &lists, i, q[i]);
	if (doc->leaks.count)
		qsort(doc->leaks.at, doc->leaks.count, sizeof(*doc->leaks.at), by_weight);
	for (size_t i = 0; i < doc->leaks.count; i++)
		doc->leaks.at[i].rank = i + 1;
	if (lists.suppressed)
		tm_document_push_text(doc, &doc->blind_spots,
				      tm_document_format(doc, "suppressed by your file: %llu sites",
							 (unsigned long long)lists.suppressed));
	tm_suppressions_free(&lists.suppressions);
	tm_acknowledged_free(&lists.acknowledged);
	count_classes(doc);
	project(a);
}
