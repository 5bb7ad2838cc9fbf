/* SPDX-License-Identifier: MIT */
/* The fragmentation report: what live blocks cost, where, and which sites pin pages. See text.h. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/analysis/analysis.h"
#include "tools/text/text.h"

#define SUGGEST_FROM                                                                               \
	((uint64_t)4 << 20) /* pinned bytes from which analysis_frag.c looks for a rule */

static const char *percent(char buf[16], double share)
{
	if (isnan(share))
		return strcpy(buf, "-");
	snprintf(buf, 16, "%.1f%%", 100 * share);
	return buf;
}

static const char *ratio(char buf[16], double value)
{
	if (isnan(value))
		return strcpy(buf, "-");
	snprintf(buf, 16, "%.2f", value);
	return buf;
}

static const char *count(char buf[24], uint64_t value)
{
	if (value == TM_DOC_UNKNOWN)
		return strcpy(buf, "-");
	snprintf(buf, 24, "%" PRIu64, value);
	return buf;
}

static double share(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : NAN;
}

/* On narrower terminals, columns that follow from the others are left out. */
#define NARROW 110u

static void print_tier_briefly(struct tm_text *t, const struct tm_doc_tier_row *r)
{
	char live[24], span[24], cached[24], blowup[16], external[16];

	tm_text_line(t, TM_TEXT_PLAIN, "%-10s %9s %9s %9s %8s %8s  %s",
		     r->tier ? tm_document_tier_name(r->tier) : "all",
		     tm_text_bytes(live, r->live_req), tm_text_bytes(span, r->span),
		     tm_text_bytes(cached, r->cached), ratio(blowup, r->blowup_now),
		     percent(external, share(r->span > r->slot ? r->span - r->slot : 0, r->span)),
		     r->verdict ? r->verdict : "");
}

static void print_tier(struct tm_text *t, const struct tm_doc_tier_row *r)
{
	char live[24], slot[24], span[24], cached[24], pages[24];
	char blowup[16], internal[16], external[16], huge[16], pure[16];

	tm_text_line(t, TM_TEXT_PLAIN, "%-10s %9s %9s %9s %9s %7s %8s %8s %6s %6s %6s  %s",
		     r->tier ? tm_document_tier_name(r->tier) : "all",
		     tm_text_bytes(live, r->live_req), tm_text_bytes(slot, r->slot),
		     tm_text_bytes(span, r->span), tm_text_bytes(cached, r->cached),
		     ratio(blowup, r->blowup_now),
		     percent(internal, share(r->slot - r->live_req, r->slot)),
		     percent(external, share(r->span > r->slot ? r->span - r->slot : 0, r->span)),
		     percent(huge, r->huge_cov), percent(pure, r->purity),
		     count(pages, r->sparse_pages), r->verdict ? r->verdict : "");
}

static void print_tiers(struct tm_text *t, const struct tm_document *doc)
{
	bool narrow = t->width && t->width < NARROW;

	tm_text_line(t, TM_TEXT_PLAIN, "%s", "");
	if (narrow)
		tm_text_line(t, TM_TEXT_DIM, "%-10s %9s %9s %9s %8s %8s  %s", "tier", "live req",
			     "spans", "cached", "blow-up", "external", "verdict");
	else
		tm_text_line(t, TM_TEXT_DIM, "%-10s %9s %9s %9s %9s %7s %8s %8s %6s %6s %6s  %s",
			     "tier", "live req", "slots", "spans", "cached", "blow-up", "internal",
			     "external", "huge", "pure", "sparse", "verdict");
	for (size_t i = 0; i < doc->tiers.count; i++)
		(narrow ? print_tier_briefly : print_tier)(t, &doc->tiers.at[i]);
}

static void print_peak(struct tm_text *t, const struct tm_document *doc)
{
	const struct tm_doc_tier_row *r;
	char live[24];
	int64_t saved = 0;
	bool known = false;

	for (size_t i = 0; i < doc->tiers.count; i++) {
		r = &doc->tiers.at[i];
		if (r->saved_bytes != TM_DOC_UNKNOWN_DELTA) {
			saved += r->saved_bytes;
			known = true;
		}
		if (!isnan(r->blowup_peak))
			tm_text_line(t, TM_TEXT_PLAIN,
				     "at the peak  %.2f resident bytes for each live one",
				     r->blowup_peak);
	}
	if (known)
		tm_text_line(t, TM_TEXT_PLAIN,
			     "tiers  %s %s against survivors scattered by chance (estimate)",
			     saved < 0 ? "cost" : "save",
			     tm_text_bytes(live, (uint64_t)(saved < 0 ? -saved : saved)));
}

static double waste_of(const struct tm_doc_class *c)
{
	double slots = (double)c->span_bytes * (1 - c->external);

	return (double)c->span_bytes * c->external + slots * c->internal;
}

static int by_waste(const void *a, const void *b)
{
	const struct tm_doc_class *x = *(const struct tm_doc_class *const *)a;
	const struct tm_doc_class *y = *(const struct tm_doc_class *const *)b;
	double p = waste_of(x), q = waste_of(y);

	if (p != q)
		return p < q ? 1 : -1;
	return x < y ? -1 : x > y;
}

static void print_classes(struct tm_text *t, const struct tm_document *doc, size_t top)
{
	size_t n = doc->classes.count;
	const struct tm_doc_class **sorted = malloc((n + 1) * sizeof(*sorted));

	if (sorted == NULL || n == 0) {
		free(sorted);
		return;
	}
	for (size_t i = 0; i < n; i++)
		sorted[i] = &doc->classes.at[i];
	qsort(sorted, n, sizeof(*sorted), by_waste);
	tm_text_line(t, TM_TEXT_PLAIN, "%s", "");
	tm_text_line(t, TM_TEXT_DIM, "%-10s %8s %10s %8s %10s %9s %9s   %s", "tier", "slot",
		     "objects", "spans", "held", "internal", "external",
		     "worst classes; spans by tenths of fullness");
	for (size_t i = 0; i < n && i < top && waste_of(sorted[i]) > 0; i++) {
		const struct tm_doc_class *c = sorted[i];
		char slot[24], held[24], in[16], ex[16], fill[128] = "";
		int at = 0;

		for (size_t k = 0; k < c->span_fill_hist.count && k < 10; k++)
			at += snprintf(fill + at, sizeof(fill) - (size_t)at, "%" PRIu64 " ",
				       c->span_fill_hist.at[k]);
		tm_text_line(t, TM_TEXT_PLAIN, "%-10s %8s %10s %8s %10s %9s %9s   %s",
			     c->tier ? tm_document_tier_name(c->tier) : "all",
			     c->class_bytes ? count(slot, c->class_bytes) : "pages",
			     tm_text_count(c->live_objs), tm_text_count(c->spans),
			     tm_text_bytes(held, c->span_bytes), percent(in, c->internal),
			     percent(ex, c->external), fill);
	}
	free(sorted);
}

static void print_pages(struct tm_text *t, const struct tm_document *doc)
{
	const struct tm_doc_numbers *h = &doc->hugepages.density_hist;
	uint64_t all = 0;
	char line[200];
	int at = 0;

	for (size_t i = 0; i < h->count; i++)
		all += h->at[i];
	if (all == 0)
		return;
	for (size_t i = 0; i < h->count && i < 10; i++)
		at += snprintf(line + at, sizeof(line) - (size_t)at, "%" PRIu64 " ", h->at[i]);
	tm_text_line(t, TM_TEXT_PLAIN, "%s", "");
	tm_text_line(t, TM_TEXT_PLAIN, "pages of 2 MiB  %" PRIu64 "; by tenths of live bytes: %s",
		     all, line);
	if (doc->hugepages.resident_bytes != TM_DOC_UNKNOWN && doc->hugepages.resident_bytes) {
		char huge[24], resident[24];

		tm_text_line(t, TM_TEXT_PLAIN, "in huge pages  %s of %s resident (%.0f%%)",
			     tm_text_bytes(huge, doc->hugepages.huge_bytes),
			     tm_text_bytes(resident, doc->hugepages.resident_bytes),
			     100 * share(doc->hugepages.huge_bytes, doc->hugepages.resident_bytes));
	}
}

static uint64_t pages_pinned_by(const struct tm_document *doc, const char *id, uint64_t *ret_bytes)
{
	uint64_t pages = 0;

	*ret_bytes = 0;
	for (size_t i = 0; i < doc->hugepages.pages.count; i++) {
		const struct tm_doc_page *p = &doc->hugepages.pages.at[i];

		if (p->pinned_by && strcmp(p->pinned_by, id) == 0) {
			pages++;
			*ret_bytes += p->pinned_bytes;
		}
	}
	return pages;
}

/* " <- remember": the caller of the site's function; "" if unknown. */
static const char *caller(const struct tm_document *doc, const struct tm_doc_site *s, char buf[128])
{
	const struct tm_doc_frame *first = tm_analysis_frame(doc, s);
	bool inside = false;

	buf[0] = '\0';
	for (size_t i = 0; s->stack < doc->stacks.count; i++) {
		const struct tm_doc_numbers *frames = &doc->stacks.at[s->stack].frames;

		if (i == frames->count)
			break;
		const struct tm_doc_frame *f = &doc->frames.at[frames->at[i]];
		if (inside && f->fn && !tm_analysis_is_plumbing(doc, f)) {
			snprintf(buf, 128, "  <- %.*s", (int)strcspn(f->fn, "("), f->fn);
			break;
		}
		inside |= f == first;
	}
	return buf;
}

static void print_pinned(struct tm_text *t, const struct tm_document *doc,
			 const struct tm_text_options *options)
{
	struct tm_text_options by_pinned = *options;
	size_t n;

	if (by_pinned.sort == NULL)
		by_pinned.sort = "pinned";
	const struct tm_doc_site **site = tm_text_pick_sites(doc, &by_pinned, &n);
	for (size_t i = 0; i < n && i < options->top; i++) {
		char pinned[24], held[24], most[64] = "", name[300], from[128], named[432];
		uint64_t bytes, pages = pages_pinned_by(doc, site[i]->id, &bytes);

		if (site[i]->frag_pinned_bytes == TM_DOC_UNKNOWN || !site[i]->frag_pinned_bytes)
			break;
		if (i == 0) {
			tm_text_line(t, TM_TEXT_PLAIN, "%s", "");
			tm_text_prose(
				t, TM_TEXT_DIM, 2,
				"pinned by: sites whose oldest objects hold pages less than half live, and "
				"pages that one holds most of");
		}
		tm_analysis_name_frame(doc, tm_analysis_frame(doc, site[i]), name, sizeof(name));
		if (pages)
			snprintf(most, sizeof(most), "%" PRIu64 " pages by %s of blocks", pages,
				 tm_text_bytes(held, bytes));
		snprintf(named, sizeof(named), "%s%s", name, caller(doc, site[i], from));
		tm_text_named(t, TM_TEXT_PLAIN, named, "%-8s %9s  %-28s  ", site[i]->id,
			      tm_text_bytes(pinned, site[i]->frag_pinned_bytes), most);
	}
	free(site);
}

static void print_suggestions(struct tm_text *t, const struct tm_document *doc, size_t top)
{
	char saves[24];
	uint64_t pinned = 0;

	for (size_t i = 0; i < doc->sites.count; i++)
		pinned += doc->sites.at[i].frag_pinned_bytes;
	if (doc->suggestions.count == 0 && pinned >= SUGGEST_FROM)
		tm_text_line(
			t, TM_TEXT_DIM, "%s",
			"suggest  no rule: rules move blocks above 1 KiB, by the call that makes "
			"them; here the program has to");
	for (size_t i = 0; i < doc->suggestions.count && i < top; i++)
		tm_text_prose(t, TM_TEXT_PLAIN, 9, "%s  %s   # %s, %s", i ? "       " : "suggest",
			      doc->suggestions.at[i].rule, doc->suggestions.at[i].why,
			      tm_text_bytes(saves, doc->suggestions.at[i].saves_bytes));
}

void tm_text_frag(struct tm_text *t, const struct tm_document *doc,
		  const struct tm_text_options *options)
{
	tm_text_head(t, doc, "fragmentation");
	print_tiers(t, doc);
	print_peak(t, doc);
	print_classes(t, doc, options->top);
	print_pages(t, doc);
	print_pinned(t, doc, options);
	print_suggestions(t, doc, options->top);
	tm_text_gpu_frag(t, doc);
	tm_text_gpu_pools(t, doc);
	tm_text_balance(t, doc);
	tm_text_line(t, TM_TEXT_PLAIN, "%s", "");
	tm_text_blind_spots(t, doc);
}
