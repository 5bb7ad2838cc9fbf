/* SPDX-License-Identifier: MIT */
/* combine_merge: adds up the documents of several processes. See combine.h. */
#include "tools/analysis/combine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/fmt.h"
#include "tools/analysis/analysis.h"
#include "tools/analysis/combine_parts.h"

static void add(uint64_t *sum, uint64_t more)
{
	if (more == TM_DOC_UNKNOWN)
		return;
	*sum = *sum == TM_DOC_UNKNOWN ? more : *sum + more;
}

static void add_delta(int64_t *sum, int64_t more)
{
	if (more == TM_DOC_UNKNOWN_DELTA)
		return;
	*sum = *sum == TM_DOC_UNKNOWN_DELTA ? more : *sum + more;
}

/* Contexts differ between processes: never merge two rows. */
static void add_gpu(struct tm_document *doc, const struct tm_document *more,
		    const struct tm_combine_places *places)
{
	for (size_t i = 0; i < more->gpu.count; i++) {
		const struct tm_doc_gpu *from = &more->gpu.at[i];
		struct tm_doc_gpu *to = tm_combine_same_gpu(doc, from);

		add(&to->live_bytes, from->live_bytes);
		add(&to->peak, from->peak);
		add(&to->live_objs, from->live_objs);
		add(&to->alloc_objs, from->alloc_objs);
		add(&to->alloc_bytes, from->alloc_bytes);
		for (size_t k = 0; k < from->sites.count; k++)
			tm_combine_add_gpu_site(doc, to, more, &from->sites.at[k], places);
	}
}

static void add_gpu_pools(struct tm_document *doc, const struct tm_document *more)
{
	for (size_t i = 0; i < more->gpu_pools.count; i++) {
		struct tm_doc_gpu_pool *p = tm_document_add(doc, TM_DOC_GPU_POOLS);

		*p = more->gpu_pools.at[i];
		p->pool = tm_document_text(doc, p->pool);
	}
}

static void add_figures(struct tm_doc_site *to, const struct tm_doc_site *from)
{
	add(&to->alloc_objs, from->alloc_objs);
	add(&to->alloc_bytes, from->alloc_bytes);
	add(&to->free_objs, from->free_objs);
	add(&to->free_bytes, from->free_bytes);
	add(&to->live_objs, from->live_objs);
	add(&to->live_bytes, from->live_bytes);
	add(&to->slot_bytes, from->slot_bytes);
	add(&to->frag_pinned_bytes, from->frag_pinned_bytes);
	add(&to->unreachable_objs, from->unreachable_objs);
	add(&to->unreachable_bytes, from->unreachable_bytes);
}

static void add_balance(struct tm_doc_balance *to, const struct tm_doc_balance *from)
{
	add(&to->rss_bytes, from->rss_bytes);
	add_delta(&to->live_req, from->live_req);
	add_delta(&to->internal, from->internal);
	add_delta(&to->external, from->external);
	add_delta(&to->cached, from->cached);
	add_delta(&to->metadata, from->metadata);
	add_delta(&to->other_anon, from->other_anon);
	add_delta(&to->file, from->file);
	add_delta(&to->pinned, from->pinned);
	add_delta(&to->nonresident, from->nonresident);
	add_delta(&to->residual, from->residual);
}

static int by_live(const void *a, const void *b)
{
	const struct tm_doc_site *x = a, *y = b;

	if (x->live_bytes != y->live_bytes)
		return x->live_bytes < y->live_bytes ? 1 : -1;
	return strcmp(x->id, y->id);
}

static void add_leaks(struct tm_document *doc, const struct tm_document *more)
{
	for (size_t i = 0; i < more->leaks.count; i++) {
		const struct tm_doc_leak *from = &more->leaks.at[i];
		struct tm_doc_leak *to = tm_document_add(doc, TM_DOC_LEAKS);

		to->rank = doc->leaks.count;
		to->site = tm_document_text(doc, from->site);
		to->class = from->class;
		to->confidence = from->confidence;
		to->slope_bytes_per_h = from->slope_bytes_per_h;
		for (size_t k = 0; k < from->ci95.count; k++)
			tm_document_push_real(doc, &to->ci95, from->ci95.at[k]);
		to->p = from->p;
		to->q = from->q;
		to->cohort_fill = from->cohort_fill;
		to->direct = from->direct;
		to->indirect = from->indirect;
		to->direct_objs = from->direct_objs;
		to->indirect_objs = from->indirect_objs;
		to->live_bytes = from->live_bytes;
		to->live_objs = from->live_objs;
		to->hint = tm_document_format(doc, "in process %llu",
					      (unsigned long long)more->process.pid);
	}
	add(&doc->verdict.growing, more->verdict.growing);
	add(&doc->verdict.unreachable, more->verdict.unreachable);
	add(&doc->verdict.at_exit, more->verdict.at_exit);
}

static struct tm_doc_tier_row *tier_row(struct tm_document *doc, enum tm_doc_tier tier)
{
	for (size_t i = 0; i < doc->tiers.count; i++) {
		if (doc->tiers.at[i].tier == tier)
			return &doc->tiers.at[i];
	}
	struct tm_doc_tier_row *row = tm_document_add(doc, TM_DOC_TIERS);
	row->tier = tier;
	return row;
}

/*
 * Adds sums, also of peaks, which processes need not have at the same time. The ratios of a peak
 * can't be combined and become unknown.
 */
static void add_tiers(struct tm_document *doc, const struct tm_document *more)
{
	for (size_t i = 0; i < more->tiers.count; i++) {
		const struct tm_doc_tier_row *from = &more->tiers.at[i];
		struct tm_doc_tier_row *to = tier_row(doc, from->tier);

		add(&to->live_req, from->live_req);
		add(&to->live_objs, from->live_objs);
		add(&to->slot, from->slot);
		add(&to->span, from->span);
		add(&to->cached, from->cached);
		add(&to->peak_live, from->peak_live);
		add(&to->peak_rss, from->peak_rss);
		add(&to->refused, from->refused);
		add(&to->sparse_pages, from->sparse_pages);
		add_delta(&to->saved_bytes, from->saved_bytes);
		to->blowup_peak = to->huge_cov = to->purity = NAN;
		to->blowup_now = to->live_req && to->live_req != TM_DOC_UNKNOWN
					 ? (double)(to->span + to->cached) / (double)to->live_req
					 : NAN;
		to->verdict = NULL;
	}
}

static void add_mappings(struct tm_document *doc, const struct tm_document *more)
{
	for (size_t i = 0; i < more->mappings.count; i++) {
		const struct tm_doc_mapping *from = &more->mappings.at[i];
		struct tm_doc_mapping *to = NULL;

		for (size_t k = 0; k < doc->mappings.count && to == NULL; k++) {
			if (tm_combine_is_text(doc->mappings.at[k].name, from->name) &&
			    tm_combine_is_text(doc->mappings.at[k].part, from->part))
				to = &doc->mappings.at[k];
		}
		if (to == NULL) {
			to = tm_document_add(doc, TM_DOC_MAPPINGS);
			to->name = tm_document_text(doc, from->name);
			to->part = tm_document_text(doc, from->part);
		}
		add(&to->bytes, from->bytes);
		add(&to->mapped_bytes, from->mapped_bytes);
		add(&to->count, from->count);
	}
}

/*
 * Drops the leak verdict of an ended process, which covers every unfreed block, the youngest as
 * well.
 */
static void forget_judged(struct tm_document *doc)
{
	if (doc->process.ended == TM_DOC_CLEAN)
		doc->scan.young_objs = doc->scan.young_bytes = 0;
}

/* Adds what the passes found and left out; they were at different times. */
static void add_scan(struct tm_document *doc, const struct tm_document *more)
{
	struct tm_doc_scans *s = &doc->scan;

	if (s->state) { /* so far of one process */
		forget_judged(doc);
		s->state = 0;
		s->passes = s->at_unix_ns = s->threads_stopped = s->threads_missed = s->stopped_us =
			TM_DOC_UNKNOWN;
		s->why = NULL;
	}
	add(&s->read_bytes, more->scan.read_bytes);
	add(&s->unread_bytes, more->scan.unread_bytes);
	add(&s->found_objs, more->scan.found_objs);
	add(&s->found_bytes, more->scan.found_bytes);
	if (more->process.ended != TM_DOC_CLEAN) {
		add(&s->young_objs, more->scan.young_objs);
		add(&s->young_bytes, more->scan.young_bytes);
	}
}

/* The combined outcome: a leak in one process is a leak; else if one is undecided, all are. */
static enum tm_doc_outcome worse(enum tm_doc_outcome a, enum tm_doc_outcome b)
{
	if (a == TM_DOC_FOUND || b == TM_DOC_FOUND)
		return TM_DOC_FOUND;
	return a == TM_DOC_INCONCLUSIVE ? a : b;
}

/* Adds the other process's blind spots, with its name. */
static void add_blind_spots(struct tm_document *doc, const struct tm_document *more)
{
	for (size_t i = 0; i < more->blind_spots.count; i++)
		tm_document_push_text(doc, &doc->blind_spots,
				      tm_document_format(doc, "process %llu: %s",
							 (unsigned long long)more->process.pid,
							 more->blind_spots.at[i]));
}

void tm_combine_sum_up(struct tm_document *doc, size_t processes)
{
	const struct tm_doc_verdict *v = &doc->verdict;
	char text[160] = "", live[24];
	struct tm_fmt_out out = {text, sizeof(text), 0};
	uint64_t sum = 0, objects = 0, young = 0;

	if (processes < 2)
		return;
	for (size_t i = 0; i < doc->sites.count; i++) {
		add(&sum, doc->sites.at[i].live_bytes);
		add(&objects, doc->sites.at[i].live_objs);
	}
	add(&young, doc->scan.young_objs);
	tm_fmt_bytes(live, sizeof(live), sum);
	doc->process.program = tm_document_format(doc, "merge of %zu processes", processes);
	doc->process.pid = TM_DOC_UNKNOWN;
	tm_fmt_add(&out, "%zu processes, %s live", processes, live);
	if (v->growing != TM_DOC_UNKNOWN && v->growing)
		tm_fmt_add(&out, "; %llu growing", (unsigned long long)v->growing);
	if (v->unreachable != TM_DOC_UNKNOWN && v->unreachable)
		tm_fmt_add(&out, "; %llu unreachable", (unsigned long long)v->unreachable);
	if (v->at_exit != TM_DOC_UNKNOWN && v->at_exit)
		tm_fmt_add(&out, "; %llu live at exit", (unsigned long long)v->at_exit);
	if (doc->leaks.count == 0 && (v->growing == TM_DOC_UNKNOWN || v->growing == 0)) {
		tm_fmt_add(&out, "; ");
		tm_analysis_say_no_leak(&out, objects, young);
	}
	doc->verdict.text = tm_document_text(doc, text);
	tm_document_push_text(
		doc, &doc->blind_spots,
		"pages that processes share are resident in each of them: their sum is "
		"more than they take");
}

void tm_combine_merge(struct tm_document *doc, const struct tm_document *more)
{
	struct tm_combine_index own = tm_combine_index(doc, doc);
	size_t *to = tm_document_alloc(doc, (more->sites.count + 1) * sizeof(*to));
	struct tm_combine_places places;

	for (size_t i = 0; i < more->sites.count; i++) {
		const struct tm_doc_site *s = tm_combine_find(&own, more->sites.at[i].id);
		to[i] = s ? (size_t)(s - doc->sites.at) : SIZE_MAX;
	}
	tm_combine_add_modules(doc, more, &places);
	for (size_t i = 0; i < more->sites.count; i++) {
		struct tm_doc_site *s =
			to[i] == SIZE_MAX
				? tm_combine_add_site(doc, more, &more->sites.at[i], &places)
				: &doc->sites.at[to[i]];
		add_figures(s, &more->sites.at[i]);
	}
	if (doc->sites.count)
		qsort(doc->sites.at, doc->sites.count, sizeof(*doc->sites.at), by_live);
	add_balance(&doc->balance, &more->balance);
	add_gpu(doc, more, &places);
	add_gpu_pools(doc, more);
	add_leaks(doc, more);
	add_tiers(doc, more);
	add_mappings(doc, more);
	add_blind_spots(doc, more);
	if (more->capture.t0_unix_ns < doc->capture.t0_unix_ns)
		doc->capture.t0_unix_ns = more->capture.t0_unix_ns;
	if (more->capture.t1_unix_ns != TM_DOC_UNKNOWN &&
	    more->capture.t1_unix_ns > doc->capture.t1_unix_ns)
		doc->capture.t1_unix_ns = more->capture.t1_unix_ns;
	add_scan(doc, more);
	doc->verdict.outcome = worse(doc->verdict.outcome, more->verdict.outcome);
}
