/* SPDX-License-Identifier: MIT */
/*
 * Device and pinned memory in the reports: the same rows, as each report needs them. The account
 * knows the growth of device memory only after enough windows; before that, candidates are named as
 * such. See text.h.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/analysis/analysis.h"
#include "tools/text/text.h"

#define CANDIDATE_BLOCKS 8u
#define CALLERS 3u

struct row {
	const struct tm_doc_gpu *gpu;
	const struct tm_doc_gpu_site *site;
};

static uint64_t known(uint64_t value)
{
	return value == TM_DOC_UNKNOWN ? 0 : value;
}

static int by_live(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	uint64_t p = known(x->site->live_bytes), q = known(y->site->live_bytes);

	if (p != q)
		return p < q ? 1 : -1;
	return x->site < y->site ? -1 : x->site > y->site;
}

/* Sites of one device and kind, or of all if NULL; most live bytes first. NULL without memory. */
static struct row *sorted(const struct tm_document *doc, const struct tm_doc_gpu *only,
			  size_t *ret_count)
{
	size_t n = 0;
	struct row *row;

	for (size_t i = 0; i < doc->gpu.count; i++)
		n += doc->gpu.at[i].sites.count;
	row = malloc((n + 1) * sizeof(*row));
	*ret_count = 0;
	if (row == NULL)
		return NULL;
	n = 0;
	for (size_t i = 0; i < doc->gpu.count; i++) {
		const struct tm_doc_gpu *g = &doc->gpu.at[i];

		for (size_t k = 0; (only == NULL || only == g) && k < g->sites.count; k++)
			row[n++] = (struct row){g, &g->sites.at[k]};
	}
	qsort(row, n, sizeof(*row), by_live);
	*ret_count = n;
	return row;
}

/*
 * Formats "libapp.so+0x1234  upload  app.c:12": the place that its id names, and the function
 * there.
 */
static const char *place(char *buf, size_t size, const struct tm_document *doc,
			 const struct tm_doc_gpu_site *s)
{
	const char *id = s->site ? s->site : "?";
	const char *note = s->reserved_by ? "  reserved by a framework's cache" : "";
	char name[300] = "";

	if (s->stack < doc->stacks.count)
		tm_analysis_name_frame(doc, tm_analysis_frame_of(doc, s->stack), name,
				       sizeof(name));
	if (name[0] == '\0' || strcmp(name, id) == 0)
		snprintf(buf, size, "%s%s", id, note);
	else
		snprintf(buf, size, "%s  %s%s", id, name, note);
	return buf;
}

/* --- full ------------------------------------------------------------------------------------- */

#define SITES_EACH 3u

void tm_text_gpu(struct tm_text *t, const struct tm_document *doc)
{
	char live[24], peak[24], where[400];

	for (size_t i = 0; i < doc->gpu.count; i++) {
		const struct tm_doc_gpu *g = &doc->gpu.at[i];
		size_t n;
		struct row *row = sorted(doc, g, &n);

		if (i == 0)
			tm_text_line(t, TM_TEXT_PLAIN, "%s", "");
		tm_text_line(t, TM_TEXT_PLAIN,
			     "%s  device %s  %-16s  live %s in %s"
			     " blocks, peak %s  (%s)",
			     i ? "   " : "GPU", tm_text_count(g->dev),
			     g->memory ? g->memory : g->api, tm_text_bytes(live, g->live_bytes),
			     tm_text_count(g->live_objs), tm_text_bytes(peak, g->peak), g->api);
		for (size_t k = 0; k < n && k < SITES_EACH && known(row[k].site->live_bytes); k++)
			tm_text_named(t, TM_TEXT_PLAIN,
				      place(where, sizeof(where), doc, row[k].site),
				      "       %10s in %s blocks  ",
				      tm_text_bytes(live, row[k].site->live_bytes),
				      tm_text_count(row[k].site->live_objs));
		free(row);
	}
}

/* --- leaks ------------------------------------------------------------------------------------ */

/*
 * Whether the site looks like a leak: it holds as much as it ever did, in many blocks, few of which
 * were freed.
 */
static bool is_candidate(const struct tm_doc_gpu_site *s)
{
	uint64_t ever = known(s->alloc_objs), live = known(s->live_objs);

	return s->reserved_by == NULL && live >= CANDIDATE_BLOCKS && live * 4 >= ever * 3 &&
	       known(s->live_bytes) == known(s->peak);
}

void tm_text_gpu_leaks(struct tm_text *t, const struct tm_document *doc, size_t top)
{
	bool any = false, candidates = false, judged = false;
	size_t n, shown = 0;
	struct row *row = sorted(doc, NULL, &n);

	for (size_t i = 0; row && i < n; i++)
		any |= known(row[i].site->live_bytes) != 0;
	for (size_t i = 0; row && i < n; i++)
		judged |= !isnan(row[i].site->growth_bytes_per_h);
	if (!any) {
		free(row);
		return;
	}
	tm_text_line(t, TM_TEXT_PLAIN, "%s", "");
	tm_text_prose(t, TM_TEXT_PLAIN, 2,
		      judged ? "device memory %s, its growth judged as that of host memory is"
			     : "device memory %s: not judged, windows or blocks are too few",
		      doc->process.ended == TM_DOC_CLEAN    ? "held at the exit"
		      : doc->process.ended == TM_DOC_KILLED ? "held at the end"
							    : "held now");
	tm_text_line(t, TM_TEXT_DIM, "%10s %8s %8s %8s  %s", "live", "blocks", "ever", "freed",
		     "device, kind, site");
	for (size_t i = 0; i < n && known(row[i].site->live_bytes); i++) {
		const struct tm_doc_gpu_site *s = row[i].site;
		char live[24], where[400];

		if (shown++ >= top)
			continue;
		bool candidate = !judged && is_candidate(s);
		char rate[32], grows[48] = "";

		candidates |= candidate;
		if (s->growing)
			snprintf(grows, sizeof(grows), "GROWING %s ",
				 tm_text_rate(rate, s->growth_bytes_per_h));
		tm_text_named(t,
			      s->growing  ? TM_TEXT_BAD
			      : candidate ? TM_TEXT_UNSURE
					  : TM_TEXT_PLAIN,
			      place(where, sizeof(where), doc, s),
			      "%10s %8" PRIu64 " %8" PRIu64 " %8" PRIu64 "  %" PRIu64 " %s  %s",
			      tm_text_bytes(live, s->live_bytes), s->live_objs,
			      known(s->alloc_objs), known(s->alloc_objs) - s->live_objs,
			      row[i].gpu->dev,
			      row[i].gpu->memory ? row[i].gpu->memory : row[i].gpu->api,
			      candidate ? "CANDIDATE " : grows);
		if (candidate || s->growing)
			tm_text_callers(t, doc, s->stack, CALLERS);
	}
	if (shown > top)
		tm_text_line(t, TM_TEXT_DIM, "%10s and %zu sites with less, see --top", "",
			     shown - top);
	if (candidates)
		tm_text_line(
			t, TM_TEXT_DIM,
			"%10s candidate: at its peak, few freed, as leaks and weights are; two "
			"moments tell (diff)",
			"");
	free(row);
}

/* --- fragmentation ---------------------------------------------------------------------------- */

void tm_text_gpu_frag(struct tm_text *t, const struct tm_document *doc)
{
	char live[24], peak[24], cache[24];

	for (size_t i = 0; i < doc->gpu.count; i++) {
		const struct tm_doc_gpu *g = &doc->gpu.at[i];
		uint64_t reserved = 0;

		for (size_t k = 0; k < g->sites.count; k++) {
			if (g->sites.at[k].reserved_by)
				reserved += known(g->sites.at[k].live_bytes);
		}
		if (i == 0) {
			tm_text_line(t, TM_TEXT_PLAIN, "%s", "");
			tm_text_line(t, TM_TEXT_DIM, "%-6s %-16s %10s %10s %8s %12s  %s", "device",
				     "kind", "live", "peak", "blocks", "in caches",
				     "of frameworks: what they use of it is theirs to tell");
		}
		tm_text_line(t, TM_TEXT_PLAIN, "%6s %-16s %10s %10s %8s %12s",
			     tm_text_count(g->dev), g->memory ? g->memory : g->api,
			     tm_text_bytes(live, g->live_bytes), tm_text_bytes(peak, g->peak),
			     tm_text_count(g->live_objs),
			     reserved ? tm_text_bytes(cache, reserved) : "-");
	}
}

/* --- the library's own pools ------------------------------------------------------------------ */

void tm_text_gpu_pools(struct tm_text *t, const struct tm_document *doc)
{
	for (size_t i = 0; i < doc->gpu_pools.count; i++) {
		const struct tm_doc_gpu_pool *p = &doc->gpu_pools.at[i];
		char reserved[24], used[24], idle[24], share[16] = "-", hits[80] = "";

		if (i == 0) {
			tm_text_line(t, TM_TEXT_PLAIN, "%s", "");
			tm_text_line(t, TM_TEXT_DIM, "%-6s %-16s %10s %10s %10s %6s  %s", "device",
				     "our pool", "reserved", "used", "idle", "idle%",
				     "as of the last sample");
		}
		if (known(p->reserved_bytes) && p->used_bytes != TM_DOC_UNKNOWN)
			snprintf(share, sizeof(share), "%.1f%%",
				 100 * (double)p->idle_bytes / (double)p->reserved_bytes);
		if (p->hits != TM_DOC_UNKNOWN && p->misses != TM_DOC_UNKNOWN)
			snprintf(hits, sizeof(hits), "%" PRIu64 " of %" PRIu64 " requests served",
				 p->hits, p->hits + p->misses);
		tm_text_line(t, TM_TEXT_PLAIN, "%6s %-16s %10s %10s %10s %6s  %s",
			     tm_text_count(p->dev), p->pool ? p->pool : "?",
			     tm_text_bytes(reserved, p->reserved_bytes),
			     tm_text_bytes(used, p->used_bytes), tm_text_bytes(idle, p->idle_bytes),
			     share, hits);
	}
}

/* --- diff ------------------------------------------------------------------------------------- */

void tm_text_gpu_diff(struct tm_text *t, const struct tm_document *doc, size_t top)
{
	size_t n, shown = 0;
	struct row *row = sorted(doc, NULL, &n);

	for (size_t i = 0; row && i < n && shown < top; i++) {
		const struct tm_doc_gpu_site *s = row[i].site;
		char where[400];

		if (s->base_live_bytes == TM_DOC_UNKNOWN || s->live_bytes == s->base_live_bytes)
			continue;
		if (shown++ == 0) {
			tm_text_line(t, TM_TEXT_PLAIN, "%s", "");
			tm_text_line(t, TM_TEXT_DIM, "%14s %12s  %s", "device bytes", "blocks",
				     "device, kind, site");
		}
		tm_text_named(t, TM_TEXT_PLAIN, place(where, sizeof(where), doc, s),
			      "%+14" PRId64 " %+12" PRId64 "  %" PRIu64 " %s  ",
			      (int64_t)(s->live_bytes - s->base_live_bytes),
			      (int64_t)(s->live_objs - s->base_live_objs), row[i].gpu->dev,
			      row[i].gpu->memory ? row[i].gpu->memory : row[i].gpu->api);
	}
	free(row);
}

/* --- top -------------------------------------------------------------------------------------- */

size_t tm_text_gpu_brief(struct tm_text *t, const struct tm_document *doc, size_t most)
{
	char live[24], peak[24];
	size_t shown = 0;

	for (size_t i = 0; i < doc->gpu.count && shown < most; i++) {
		const struct tm_doc_gpu *g = &doc->gpu.at[i];

		tm_text_line(t, TM_TEXT_PLAIN, "device %s  %-16s live %10s  peak %10s  %s blocks",
			     tm_text_count(g->dev), g->memory ? g->memory : g->api,
			     tm_text_bytes(live, g->live_bytes), tm_text_bytes(peak, g->peak),
			     tm_text_count(g->live_objs));
		shown++;
	}
	if (shown < doc->gpu.count)
		tm_text_line(t, TM_TEXT_DIM, "and %zu kinds more on devices, see report",
			     doc->gpu.count - shown++);
	return shown;
}
