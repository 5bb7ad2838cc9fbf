/* SPDX-License-Identifier: MIT */
/* combine_diff: puts the figures of one document beside those of another. See combine.h. */
#include "tools/analysis/combine.h"

#include <stdlib.h>
#include <string.h>

#include "shim/base/fmt.h"
#include "tools/analysis/combine_parts.h"

/* --- device memory ---------------------------------------------------------------------------- */

/*
 * Contexts are handles within a process: another run has different ones, so any unmatched row will
 * do.
 */
static struct tm_doc_gpu_site *find_gpu_site(const struct tm_doc_gpu *g,
					     const struct tm_doc_gpu_site *like)
{
	struct tm_doc_gpu_site *other = NULL;

	for (size_t i = 0; i < g->sites.count; i++) {
		struct tm_doc_gpu_site *s = &g->sites.at[i];

		if (!tm_combine_is_text(s->site, like->site) || s->tier != like->tier ||
		    s->base_live_objs)
			continue;
		if (s->context == like->context)
			return s;
		if (other == NULL)
			other = s;
	}
	return other;
}

static void compare_gpu(struct tm_document *doc, const struct tm_document *a,
			const struct tm_combine_places *places)
{
	for (size_t i = 0; i < doc->gpu.count; i++) {
		struct tm_doc_gpu *g = &doc->gpu.at[i];

		for (size_t k = 0; k < g->sites.count; k++)
			g->sites.at[k].base_live_bytes = g->sites.at[k].base_live_objs = 0;
	}
	for (size_t i = 0; i < a->gpu.count; i++) {
		struct tm_doc_gpu *g = tm_combine_same_gpu(doc, &a->gpu.at[i]);

		for (size_t k = 0; k < a->gpu.at[i].sites.count; k++) {
			const struct tm_doc_gpu_site *old = &a->gpu.at[i].sites.at[k];
			struct tm_doc_gpu_site *s = find_gpu_site(g, old);

			if (s == NULL) {
				s = tm_combine_add_gpu_site(doc, g, a, old, places);
				s->live_bytes = s->live_objs = 0;
				s->growing = false;
			}
			s->base_live_bytes = old->live_bytes;
			s->base_live_objs = old->live_objs;
		}
	}
}

/* --- sites ------------------------------------------------------------------------------------ */

static void set_base(struct tm_doc_site *site, const struct tm_doc_site *base)
{
	site->base_alloc_objs = base ? base->alloc_objs : 0;
	site->base_alloc_bytes = base ? base->alloc_bytes : 0;
	site->base_live_objs = base ? base->live_objs : 0;
	site->base_live_bytes = base ? base->live_bytes : 0;
}

static int64_t grown(const struct tm_doc_site *s)
{
	return (int64_t)(s->live_bytes - s->base_live_bytes);
}

static int by_growth(const void *a, const void *b)
{
	int64_t x = grown(a), y = grown(b);

	if (x != y)
		return x < y ? 1 : -1;
	return strcmp(((const struct tm_doc_site *)a)->id, ((const struct tm_doc_site *)b)->id);
}

static const char *signed_bytes(char buf[24], uint64_t now, uint64_t then)
{
	buf[0] = now < then ? '-' : '+';
	tm_fmt_bytes(buf + 1, 23, now < then ? then - now : now - then);
	return buf;
}

/* Sets the verdict: by how much live and resident bytes differ. */
static void compare(struct tm_document *doc)
{
	struct tm_doc_verdict *v = &doc->verdict;
	uint64_t now = 0, then = 0;
	char live[24], resident[24];
	bool known = doc->balance.rss_bytes != TM_DOC_UNKNOWN &&
		     doc->diff.base.rss_bytes != TM_DOC_UNKNOWN;

	for (size_t i = 0; i < doc->sites.count; i++) {
		now += doc->sites.at[i].live_bytes;
		then += doc->sites.at[i].base_live_bytes;
	}
	v->text = tm_document_format(
		doc, "live %s, resident %s", signed_bytes(live, now, then),
		known ? signed_bytes(resident, doc->balance.rss_bytes, doc->diff.base.rss_bytes)
		      : "not known of both");
}

void tm_combine_diff(struct tm_document *doc, const struct tm_document *a)
{
	struct tm_combine_index before = tm_combine_index(doc, a), after;
	struct tm_combine_places places;
	size_t own = doc->sites.count;

	for (size_t i = 0; i < own; i++)
		set_base(&doc->sites.at[i], tm_combine_find(&before, doc->sites.at[i].id));
	after = tm_combine_index(doc, doc);
	/*
	 * The index points into the list, which moves when sites are added: collect first, add
	 * later.
	 */
	unsigned char *gone = tm_document_alloc(doc, before.count + 1);
	for (size_t i = 0; i < before.count; i++)
		gone[i] = tm_combine_find(&after, before.at[i]->id) == NULL;
	tm_combine_add_modules(doc, a, &places);
	for (size_t i = 0; i < before.count; i++) {
		if (gone[i])
			set_base(tm_combine_add_site(doc, a, before.at[i], &places), before.at[i]);
	}
	if (doc->sites.count)
		qsort(doc->sites.at, doc->sites.count, sizeof(*doc->sites.at), by_growth);
	compare_gpu(doc, a, &places);
	doc->kind = TM_DOC_DIFF;
	doc->diff.a = tm_document_text(doc, a->process.ledger);
	doc->diff.b = doc->process.ledger;
	doc->diff.a_unix_ns = a->capture.t1_unix_ns;
	doc->diff.b_unix_ns = doc->capture.t1_unix_ns;
	doc->diff.base = a->balance;
	compare(doc);
}
