/* SPDX-License-Identifier: MIT */
/*
 * export_prometheus: writes text exposition format 0.0.4. Labels are the program, its process,
 * tiers and parts, which gives a few dozen series per process. Sites are series only on request,
 * since their number has no bound.
 *
 * All samples of a family must be contiguous, so families are the outer loop and documents the
 * inner one.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/document/document_fields.h"
#include "tools/export/export.h"
#include "tools/text/text_fit.h"

struct writer {
	FILE *out;
	const struct tm_document *doc; /* document of the current sample */
	const char *family;
};

static void put_label_text(FILE *out, const char *text)
{
	char *shown = tm_text_fit_copy(text, strlen(text));

	for (const char *c = shown ? shown : "?"; *c; c++) {
		if (*c == '\\' || *c == '"')
			putc('\\', out);
		putc(*c, out);
	}
	free(shown);
}

static void put_label(const struct writer *w, const char *key, const char *text)
{
	fprintf(w->out, ",%s=\"", key);
	put_label_text(w->out, text ? text : "");
	putc('"', w->out);
}

static void put_open(const struct writer *w)
{
	fprintf(w->out, "tiermalloc_%s{program=\"", w->family);
	put_label_text(w->out, w->doc->process.program ? w->doc->process.program : "");
	fprintf(w->out, "\",pid=\"%" PRIu64 "\"",
		w->doc->process.pid == TM_DOC_UNKNOWN ? 0 : w->doc->process.pid);
}

static void put_close(const struct writer *w, double value)
{
	if (value == floor(value) && fabs(value) < 1e18)
		fprintf(w->out, "} %.0f\n", value);
	else
		fprintf(w->out, "} %.9g\n", value);
}

static void put_plain(const struct writer *w, uint64_t value)
{
	if (value == TM_DOC_UNKNOWN)
		return;
	put_open(w);
	put_close(w, (double)value);
}

static void put_info(const struct writer *w)
{
	put_open(w);
	put_label(w, "version", w->doc->tool.version);
	put_label(w, "ended", tm_document_ended_name(w->doc->process.ended));
	put_close(w, 1);
}

static void put_resident(const struct writer *w)
{
	put_plain(w, w->doc->balance.rss_bytes);
}

static void put_limit(const struct writer *w)
{
	put_plain(w, w->doc->process.limit_bytes);
}

static void put_balance(const struct writer *w)
{
	const struct tm_doc_balance *b = &w->doc->balance;
	const struct {
		const char *part;
		int64_t bytes;
	} parts[] = {
		{"live", b->live_req},
		{"internal", b->internal},
		{"external", b->external},
		{"cached", b->cached},
		{"metadata", b->metadata},
		{"other_anon", b->other_anon},
		{"file", b->file},
		{"pinned", b->pinned},
		{"nonresident", b->nonresident},
		{"residual", b->residual},
	};

	for (size_t i = 0; i < TM_ARRAY_LEN(parts); i++) {
		if (parts[i].bytes == TM_DOC_UNKNOWN_DELTA)
			continue;
		put_open(w);
		put_label(w, "part", parts[i].part);
		put_close(w, (double)parts[i].bytes);
	}
}

/* Writes a sample per tier: the number at an offset of its row. */
static void put_tiers(const struct writer *w, size_t offset)
{
	for (size_t i = 0; i < w->doc->tiers.count; i++) {
		const struct tm_doc_tier_row *t = &w->doc->tiers.at[i];
		uint64_t value;

		memcpy(&value, (const char *)t + offset, sizeof(value));
		if (value == TM_DOC_UNKNOWN)
			continue;
		put_open(w);
		put_label(w, "tier", tm_document_tier_name(t->tier));
		put_close(w, (double)value);
	}
}

static void put_tier_live(const struct writer *w)
{
	put_tiers(w, offsetof(struct tm_doc_tier_row, live_req));
}

static void put_tier_objects(const struct writer *w)
{
	put_tiers(w, offsetof(struct tm_doc_tier_row, live_objs));
}

static void put_tier_spans(const struct writer *w)
{
	put_tiers(w, offsetof(struct tm_doc_tier_row, span));
}

static void put_tier_cached(const struct writer *w)
{
	put_tiers(w, offsetof(struct tm_doc_tier_row, cached));
}

static void put_tier_refused(const struct writer *w)
{
	put_tiers(w, offsetof(struct tm_doc_tier_row, refused));
}

static void put_tier_huge(const struct writer *w)
{
	for (size_t i = 0; i < w->doc->tiers.count; i++) {
		const struct tm_doc_tier_row *t = &w->doc->tiers.at[i];

		if (!isfinite(t->huge_cov))
			continue;
		put_open(w);
		put_label(w, "tier", tm_document_tier_name(t->tier));
		put_close(w, t->huge_cov);
	}
}

/* Writes the sum over all sites of the number at an offset. */
static void put_sum(const struct writer *w, size_t offset)
{
	uint64_t sum = 0, value;

	for (size_t i = 0; i < w->doc->sites.count; i++) {
		memcpy(&value, (const char *)&w->doc->sites.at[i] + offset, sizeof(value));
		sum += value == TM_DOC_UNKNOWN ? 0 : value;
	}
	put_plain(w, sum);
}

static void put_allocated(const struct writer *w)
{
	put_sum(w, offsetof(struct tm_doc_site, alloc_bytes));
}

static void put_allocations(const struct writer *w)
{
	put_sum(w, offsetof(struct tm_doc_site, alloc_objs));
}

static void put_frees(const struct writer *w)
{
	put_sum(w, offsetof(struct tm_doc_site, free_objs));
}

static void put_pools(const struct writer *w, size_t offset)
{
	char slot[32];

	for (size_t i = 0; i < w->doc->pools.count; i++) {
		const struct tm_doc_pool *p = &w->doc->pools.at[i];
		uint64_t value;

		memcpy(&value, (const char *)p + offset, sizeof(value));
		if (value == TM_DOC_UNKNOWN)
			continue;
		snprintf(slot, sizeof(slot), "%" PRIu64, p->slot_bytes);
		put_open(w);
		put_label(w, "tier", tm_document_tier_name(p->tier));
		put_label(w, "slot_bytes", slot);
		put_close(w, (double)value);
	}
}

static void put_pool_hits(const struct writer *w)
{
	put_pools(w, offsetof(struct tm_doc_pool, hits));
}

static void put_pool_misses(const struct writer *w)
{
	put_pools(w, offsetof(struct tm_doc_pool, misses));
}

static void put_pool_exhausted(const struct writer *w)
{
	put_pools(w, offsetof(struct tm_doc_pool, exhausted));
}

static void put_leaks(const struct writer *w)
{
	for (unsigned class = 1; tm_words_leak_class[class - 1]; class ++) {
		uint64_t count = 0;

		for (size_t i = 0; i < w->doc->leaks.count; i++)
			count += w->doc->leaks.at[i].class == class;
		put_open(w);
		put_label(w, "class", tm_words_leak_class[class - 1]);
		put_close(w, (double)count);
	}
}

static void put_growth(const struct writer *w)
{
	if (!isfinite(w->doc->verdict.growth_bytes_per_h))
		return;
	put_open(w);
	put_close(w, w->doc->verdict.growth_bytes_per_h / 3600);
}

static void put_gpu(const struct writer *w)
{
	char dev[32];

	for (size_t i = 0; i < w->doc->gpu.count; i++) {
		const struct tm_doc_gpu *g = &w->doc->gpu.at[i];

		if (g->live_bytes == TM_DOC_UNKNOWN)
			continue;
		snprintf(dev, sizeof(dev), "%" PRIu64, g->dev);
		put_open(w);
		put_label(w, "device", dev);
		put_label(w, "api", g->api);
		put_close(w, (double)g->live_bytes);
	}
}

/* Writes pools; the contexts of a device are summed in one series. */
static void put_gpu_pools(const struct writer *w, size_t field)
{
	const struct tm_doc_gpu_pool *p = w->doc->gpu_pools.at;
	char dev[32];

	for (size_t i = 0; i < w->doc->gpu_pools.count; i++) {
		uint64_t sum = 0;
		bool first = true;

		for (size_t k = 0; k < w->doc->gpu_pools.count; k++) {
			uint64_t value;

			if (p[k].dev != p[i].dev || p[k].pool == NULL || p[i].pool == NULL ||
			    strcmp(p[k].pool, p[i].pool) != 0)
				continue;
			first = first && k >= i;
			memcpy(&value, (const char *)&p[k] + field, sizeof(value));
			sum += value == TM_DOC_UNKNOWN ? 0 : value;
		}
		if (!first || p[i].pool == NULL)
			continue;
		snprintf(dev, sizeof(dev), "%" PRIu64, p[i].dev);
		put_open(w);
		put_label(w, "device", dev);
		put_label(w, "pool", p[i].pool);
		put_close(w, (double)sum);
	}
}

static void put_gpu_used(const struct writer *w)
{
	put_gpu_pools(w, offsetof(struct tm_doc_gpu_pool, used_bytes));
}

static void put_gpu_idle(const struct writer *w)
{
	put_gpu_pools(w, offsetof(struct tm_doc_gpu_pool, idle_bytes));
}

static void put_torn(const struct writer *w)
{
	put_plain(w, w->doc->capture.seqlock_torn);
}

static const struct {
	const char *name, *type, *help;
	void (*put)(const struct writer *);
} families[] = {
	{"process_info", "gauge", "A process with a ledger", put_info},
	{"resident_bytes", "gauge", "Resident set size of the process", put_resident},
	{"memory_limit_bytes", "gauge", "Memory limit of its cgroup", put_limit},
	{"balance_bytes", "gauge", "Parts that the resident set size is the sum of", put_balance},
	{"tier_live_bytes", "gauge", "Requested bytes of live blocks", put_tier_live},
	{"tier_live_objects", "gauge", "Live blocks", put_tier_objects},
	{"tier_span_bytes", "gauge", "Bytes of pages that hold a live block", put_tier_spans},
	{"tier_cached_bytes", "gauge", "Bytes of resident pages without a live block",
	 put_tier_cached},
	{"tier_huge_ratio", "gauge", "Share of resident bytes on huge pages", put_tier_huge},
	{"tier_refused_total", "counter", "Requests beyond the ceiling of the tier",
	 put_tier_refused},
	{"allocated_bytes_total", "counter", "Requested bytes ever", put_allocated},
	{"allocations_total", "counter", "Blocks ever handed out", put_allocations},
	{"frees_total", "counter", "Blocks ever freed", put_frees},
	{"pool_hits_total", "counter", "Requests that a pool served", put_pool_hits},
	{"pool_misses_total", "counter", "Requests of its size that it did not serve",
	 put_pool_misses},
	{"pool_exhausted_total", "counter", "Requests that found the pool empty",
	 put_pool_exhausted},
	{"leaks", "gauge", "Sites judged to leak", put_leaks},
	{"growth_bytes_per_second", "gauge", "Growth of the sites judged to grow", put_growth},
	{"gpu_live_bytes", "gauge", "Live bytes on a device", put_gpu},
	{"gpu_pool_used_bytes", "gauge", "Bytes of a device that a pool of ours handed out",
	 put_gpu_used},
	{"gpu_pool_idle_bytes", "gauge", "Bytes of a device that a pool of ours keeps",
	 put_gpu_idle},
	{"torn_records", "gauge", "Records of the ledger that made no sense", put_torn},
};

static void put_family(const char *name, const char *type, const char *help, FILE *out)
{
	fprintf(out, "# HELP tiermalloc_%s %s.\n# TYPE tiermalloc_%s %s\n", name, help, name, type);
}

static void put_top_sites(const struct writer *w, uint64_t top)
{
	char label[512];

	for (size_t i = 0; i < w->doc->sites.count && i < top; i++) {
		const struct tm_doc_site *s = &w->doc->sites.at[i];
		const char *name = TM_NO_STACK;

		if (s->stack != TM_DOC_NOWHERE && w->doc->stacks.at[s->stack].frames.count)
			name = tm_frame_label(
				w->doc,
				&w->doc->frames.at[w->doc->stacks.at[s->stack].frames.at[0]], label,
				sizeof(label));
		put_open(w);
		put_label(w, "site", s->id);
		put_label(w, "function", name);
		put_close(w, (double)tm_view_weight(s, TM_VIEW_LIVE));
	}
}

bool tm_export_prometheus_all(const struct tm_document *docs, size_t count,
			      const struct tm_export_options *o, FILE *out)
{
	struct writer w = {.out = out};

	for (size_t f = 0; f < TM_ARRAY_LEN(families); f++) {
		put_family(families[f].name, families[f].type, families[f].help, out);
		w.family = families[f].name;
		for (size_t i = 0; i < count; i++) {
			w.doc = &docs[i];
			families[f].put(&w);
		}
	}
	if (o->top_sites) {
		put_family("site_live_bytes", "gauge", "Requested bytes of live blocks of a site",
			   out);
		w.family = "site_live_bytes";
		for (size_t i = 0; i < count; i++) {
			w.doc = &docs[i];
			put_top_sites(&w, o->top_sites);
		}
	}
	return !ferror(out);
}

bool tm_export_prometheus(const struct tm_document *doc, const struct tm_export_options *o,
			  FILE *out)
{
	return tm_export_prometheus_all(doc, 1, o, out);
}
