/* SPDX-License-Identifier: MIT */
/* The full report: who holds what, at what cost, and one site in detail. See text.h. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/analysis/analysis.h"
#include "tools/text/text.h"

static void print_totals(struct tm_text *t, const struct tm_document *doc)
{
	uint64_t objects = 0, live = 0, slots = 0, ever = 0, bytes = 0;
	char text[24], more[24];

	for (size_t i = 0; i < doc->sites.count; i++) {
		const struct tm_doc_site *s = &doc->sites.at[i];

		objects += s->live_objs;
		live += s->live_bytes;
		slots += s->slot_bytes == TM_DOC_UNKNOWN ? 0 : s->slot_bytes;
		ever += s->alloc_objs;
		bytes += s->alloc_bytes;
	}
	tm_text_prose(t, TM_TEXT_PLAIN, 2,
		      "live %" PRIu64 " objects, %" PRIu64 " bytes requested (%s, in slots %s), %s",
		      objects, live, tm_text_bytes(text, live), tm_text_bytes(more, slots),
		      doc->capture.counts == TM_DOC_SAMPLED ? "sampled"
		      : doc->capture.pre_attach ? "without older spans (see blind spots)"
						: "exact");
	tm_text_line(t, TM_TEXT_PLAIN, "allocated %" PRIu64 " objects, %s, by %zu sites", ever,
		     tm_text_bytes(text, bytes), doc->sites.count);
}

/* On narrower terminals the column of freed bytes is left out in favour of the place. */
#define NARROW 100u

static void print_sites(struct tm_text *t, const struct tm_document *doc,
			const struct tm_text_options *options)
{
	size_t n;
	const struct tm_doc_site **site = tm_text_pick_sites(doc, options, &n);
	size_t top = options->top < n ? options->top : n;
	bool narrow = t->width && t->width < NARROW;

	tm_text_line(t, TM_TEXT_PLAIN, "%s", "");
	if (narrow)
		tm_text_line(t, TM_TEXT_DIM, "%14s %10s  %-8s %s", "live bytes", "objects", "site",
			     "where");
	else
		tm_text_line(t, TM_TEXT_DIM, "%14s %10s %12s %12s  %-8s %s", "live bytes",
			     "objects", "allocated", "freed", "site", "where");
	for (size_t i = 0; site && i < top; i++) {
		char name[300];

		tm_analysis_name_frame(doc, tm_analysis_frame(doc, site[i]), name, sizeof(name));
		if (narrow)
			tm_text_named(t, TM_TEXT_PLAIN, name, "%14s %10s  %-8s ",
				      tm_text_count(site[i]->live_bytes),
				      tm_text_count(site[i]->live_objs), site[i]->id);
		else
			tm_text_named(t, TM_TEXT_PLAIN, name,
				      "%14s %10s %12s %12s"
				      "  %-8s ",
				      tm_text_count(site[i]->live_bytes),
				      tm_text_count(site[i]->live_objs),
				      tm_text_count(site[i]->alloc_objs),
				      tm_text_count(site[i]->free_objs), site[i]->id);
	}
	if (top < n)
		tm_text_line(t, TM_TEXT_DIM, "%14s and %zu sites with less, see --top", "",
			     n - top);
	free(site);
}

static void print_tiers(struct tm_text *t, const struct tm_document *doc)
{
	char live[24], slot[24], cached[24], peak[24];

	tm_text_line(t, TM_TEXT_PLAIN, "%s", "");
	tm_text_line(t, TM_TEXT_DIM, "%-10s %10s %10s %10s %10s %10s", "tier", "live", "slots",
		     "cached", "peak live", "refused");
	for (size_t i = 0; i < doc->tiers.count; i++) {
		const struct tm_doc_tier_row *r = &doc->tiers.at[i];

		tm_text_line(t, TM_TEXT_PLAIN, "%-10s %10s %10s %10s %10s %10" PRIu64,
			     r->tier ? tm_document_tier_name(r->tier) : "all",
			     tm_text_bytes(live, r->live_req), tm_text_bytes(slot, r->slot),
			     tm_text_bytes(cached, r->cached), tm_text_bytes(peak, r->peak_live),
			     r->refused == TM_DOC_UNKNOWN ? 0 : r->refused);
	}
}

static void print_pools(struct tm_text *t, const struct tm_document *doc, size_t top)
{
	char slot[24];

	if (doc->pools.count) {
		tm_text_line(t, TM_TEXT_PLAIN, "%s", "");
		tm_text_line(t, TM_TEXT_DIM, "%-10s %10s %10s %10s %10s %10s %8s", "pool", "slot",
			     "hits", "misses", "exhausted", "high water", "slots");
	}
	for (size_t i = 0; i < doc->pools.count; i++) {
		const struct tm_doc_pool *p = &doc->pools.at[i];

		tm_text_line(t, p->exhausted ? TM_TEXT_UNSURE : TM_TEXT_PLAIN,
			     "%-10s %10s %10s %10s %10s %10s"
			     " %8s",
			     tm_document_tier_name(p->tier), tm_text_bytes(slot, p->slot_bytes),
			     tm_text_count(p->hits), tm_text_count(p->misses),
			     tm_text_count(p->exhausted), tm_text_count(p->high_water),
			     tm_text_count(p->slots));
	}
	if (doc->sizes.count) {
		tm_text_line(t, TM_TEXT_PLAIN, "%s", "");
		tm_text_line(t, TM_TEXT_DIM, "%14s %12s %12s  %s", "size", "requests", "at once",
			     "blocks asked for most");
	}
	for (size_t i = 0; i < doc->sizes.count && i < top; i++) {
		const struct tm_doc_size *s = &doc->sizes.at[i];

		tm_text_line(t, TM_TEXT_PLAIN, "%14s %12s %12s  %s", tm_text_count(s->size),
			     tm_text_count(s->count), tm_text_count(s->peak_concurrent),
			     tm_document_tier_name(s->tier));
	}
}

static void print_events(struct tm_text *t, const struct tm_document *doc, size_t top)
{
	size_t n = doc->events.count, from = n > top ? n - top : 0;

	for (size_t i = from; i < n; i++) {
		const struct tm_doc_event *e = &doc->events.at[i];
		char ago[24];

		tm_text_line(t, TM_TEXT_DIM, "%s  %s %s  %s  %s", i == from ? "events" : "      ",
			     tm_text_time(ago, doc->capture.t1_unix_ns > e->at_unix_ns
						       ? (doc->capture.t1_unix_ns - e->at_unix_ns) /
								 1000000
						       : 0),
			     doc->process.ended == TM_DOC_RUNNING ? "ago" : "before the end",
			     e->kind ? e->kind : "", e->text ? e->text : "");
	}
}

static void print_leaks_briefly(struct tm_text *t, const struct tm_document *doc, size_t top)
{
	for (size_t i = 0; i < doc->leaks.count && i < top; i++) {
		const struct tm_doc_leak *l = &doc->leaks.at[i];
		const struct tm_doc_site *s = tm_document_site(doc, l->site);
		char name[300], rate[40], bytes[24];

		if (s == NULL)
			continue;
		tm_analysis_name_frame(doc, tm_analysis_frame(doc, s), name, sizeof(name));
		if (l->class == TM_DOC_GROWING)
			tm_text_rate(rate, l->slope_bytes_per_h);
		else
			snprintf(rate, sizeof(rate), "%s",
				 tm_text_bytes(bytes, l->direct + (l->indirect == TM_DOC_UNKNOWN
									   ? 0
									   : l->indirect)));
		if (i == 0)
			tm_text_line(t, TM_TEXT_PLAIN, "%s", "");
		tm_text_line(t, TM_TEXT_BAD, "leak  #%s %s  %s  %s  %s", tm_text_count(l->rank),
			     tm_document_leak_class_name(l->class), rate, l->site, name);
	}
}

void tm_text_full(struct tm_text *t, const struct tm_document *doc,
		  const struct tm_text_options *options)
{
	tm_text_head(t, doc, "full");
	print_totals(t, doc);
	print_leaks_briefly(t, doc, options->top);
	print_sites(t, doc, options);
	print_tiers(t, doc);
	print_pools(t, doc, options->top);
	tm_text_gpu(t, doc);
	tm_text_gpu_pools(t, doc);
	tm_text_balance(t, doc);
	tm_text_line(t, TM_TEXT_PLAIN, "%s", "");
	print_events(t, doc, options->top);
	tm_text_blind_spots(t, doc);
}

void tm_text_site(struct tm_text *t, const struct tm_document *doc, const struct tm_doc_site *s)
{
	char live[24], slots[24], pinned[24], name[300];

	tm_text_line(t, TM_TEXT_PLAIN, "%s  live %s objects, %s bytes (%s, in slots %s), exact",
		     s->id, tm_text_count(s->live_objs), tm_text_count(s->live_bytes),
		     tm_text_bytes(live, s->live_bytes), tm_text_bytes(slots, s->slot_bytes));
	tm_text_line(t, TM_TEXT_PLAIN,
		     "allocated %s objects, %s bytes; freed %s"
		     " objects, %s bytes",
		     tm_text_count(s->alloc_objs), tm_text_count(s->alloc_bytes),
		     tm_text_count(s->free_objs), tm_text_count(s->free_bytes));
	tm_text_line(t, TM_TEXT_PLAIN, "tier %s%s%s  pins %s  unreachable %" PRIu64 " objects",
		     s->tier ? tm_document_tier_name(s->tier) : "not told apart",
		     s->authority ? " by " : "",
		     s->authority ? tm_document_authority_name(s->authority) : "",
		     tm_text_bytes(pinned, s->frag_pinned_bytes),
		     s->unreachable_objs == TM_DOC_UNKNOWN ? 0 : s->unreachable_objs);
	if (s->stack >= doc->stacks.count)
		return;
	const struct tm_doc_numbers *frames = &doc->stacks.at[s->stack].frames;
	for (size_t i = 0; i < frames->count; i++) {
		const struct tm_doc_frame *f = &doc->frames.at[frames->at[i]];

		tm_analysis_name_frame(doc, f, name, sizeof(name));
		tm_text_line(t, TM_TEXT_PLAIN, "  %2zu  %s%s", i, name,
			     f->inline_of != TM_DOC_NOWHERE ? "  (inlined)" : "");
	}
	if (doc->stacks.at[s->stack].truncated)
		tm_text_line(t, TM_TEXT_DIM, "      the stack was not followed further");
}
