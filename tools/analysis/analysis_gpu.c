/* SPDX-License-Identifier: MIT */
/*
 * Device and pinned memory by device and kind, and within each by call site. Growth is judged as
 * for host memory (analysis_leaks.c), except for caches of frameworks, which keep what they have.
 * See analysis.h.
 */
#include <string.h>

#include "tools/analysis/analysis.h"

static const struct kind {
	const char *api, *memory;
} kinds[] = {
	[TM_LEDGER_GPU_DEVICE] = {"cuMemAlloc", "device"},
	[TM_LEDGER_GPU_ASYNC] = {"cuMemAllocAsync", "stream-ordered"},
	[TM_LEDGER_GPU_VMM] = {"cuMemCreate", "virtual memory"},
	[TM_LEDGER_GPU_MANAGED] = {"cuMemAllocManaged", "managed"},
	[TM_LEDGER_GPU_PINNED] = {"cuMemHostAlloc", "pinned host"},
	[TM_LEDGER_GPU_REGISTERED] = {"cuMemHostRegister", "registered host"},
	[TM_LEDGER_GPU_ARRAY] = {"cuArrayCreate", "arrays"},
	[TM_LEDGER_GPU_IPC] = {"cuIpcOpenMemHandle", "of other processes"},
};

static struct kind kind_of(const struct tm_ledger_gpu *g)
{
	static const struct kind unknown = {"unknown", "unknown"};

	return g->kind < TM_ARRAY_LEN(kinds) ? kinds[g->kind] : unknown;
}

static struct tm_doc_gpu *gpu_of(struct tm_document *doc, const struct tm_ledger_gpu *row)
{
	struct kind kind = kind_of(row);

	for (size_t i = 0; i < doc->gpu.count; i++) {
		if (doc->gpu.at[i].dev == row->device && doc->gpu.at[i].api == kind.api)
			return &doc->gpu.at[i];
	}
	struct tm_doc_gpu *g = tm_document_add(doc, TM_DOC_GPU);
	g->dev = row->device;
	g->api = kind.api;
	g->memory = kind.memory;
	g->live_bytes = g->peak = g->live_objs = g->alloc_objs = g->alloc_bytes = 0;
	return g;
}

/* Id of the host site with the same key, if it allocates host memory, too; else its address. */
static const char *id_of(struct tm_analysis *a, const struct tm_ledger_gpu *g)
{
	const struct tm_analysis_key *key = tm_analysis_key(a, g->site, g->height);
	char name[128];

	if (g->site == 1) /* collects what had no row of its own */
		return "(other sites)";
	if (key->address == g->site && key->height == g->height)
		return a->doc->sites.at[key->site].id;
	tm_ledger_name(a->ledger, g->site, name, sizeof(name));
	return tm_document_text(a->doc, name);
}

/*
 * Libraries that reserve device memory in large pieces and hand it out themselves: to the driver
 * all of it is live, even what the program has freed.
 */
static const char *cache_of(struct tm_analysis *a, const struct tm_ledger_gpu *g)
{
	static const char *const caches[] = {"libc10_cuda",   "libonnxruntime_providers_cuda",
					     "libtensorflow", "xla_extension",
					     "libjax_common", "librmm"};
	const struct tm_ledger_module *m =
		tm_ledger_module(a->ledger, g->site, a->ledger->header.epoch);
	const char *name;
	size_t length;

	if (m == NULL || (g->kind != TM_LEDGER_GPU_DEVICE && g->kind != TM_LEDGER_GPU_VMM))
		return NULL;
	length = strnlen(m->path, sizeof(m->path));
	name = memrchr(m->path, '/', length);
	name = name ? name + 1 : m->path;
	for (size_t i = 0; i < TM_ARRAY_LEN(caches); i++) {
		if (strncmp(name, caches[i], strlen(caches[i])) == 0)
			return tm_document_format(a->doc, "%.*s", (int)(m->path + length - name),
						  name);
	}
	return NULL;
}

/* --- growth ----------------------------------------------------------------------------------- */

#define MS_PER_H 3600000.0

struct tests {
	const struct tm_growth *growth[TM_LEDGER_GPU_ROWS]; /* by row; NULL: not tested */
	double window_ms[TM_LEDGER_GPU_ROWS], q[TM_LEDGER_GPU_ROWS];
};

static struct tests *test_rows(struct tm_analysis *a)
{
	const struct tm_ledger *l = a->ledger;
	struct tests *t = tm_document_alloc(a->doc, sizeof(*t));
	double p[TM_LEDGER_GPU_ROWS], q[TM_LEDGER_GPU_ROWS];
	uint32_t row[TM_LEDGER_GPU_ROWS], n = 0;
	struct tm_ledger_cohorts c;

	for (uint32_t i = 0; i < l->header.cohort_sites; i++) {
		uint64_t at = TM_LEDGER_COHORTS_AT + i * sizeof(c);

		memcpy(&c, tm_ledger_at(l, at), sizeof(c));
		if (c.gpu_row == 0 || c.gpu_row > TM_LEDGER_GPU_ROWS ||
		    t->growth[c.gpu_row - 1] != NULL)
			continue;
		if (!tm_ledger_whole(l, at, &c, sizeof(c),
				     offsetof(struct tm_ledger_cohorts, seq)) ||
		    c.gpu_row == 0 || c.gpu_row > TM_LEDGER_GPU_ROWS) {
			a->ledger->torn++;
			continue;
		}
		uint32_t r = c.gpu_row - 1;
		t->growth[r] = tm_analysis_test(a, &c, &t->window_ms[r]);
		t->q[r] = 1;
		if (t->growth[r]->stage == TM_GROWTH_TOO_FEW_WINDOWS)
			continue;
		p[n] = t->growth[r]->trend.p;
		row[n++] = r;
	}
	if (tm_trend_false_discovery(p, n, q) == 0)
		for (uint32_t i = 0; i < n; i++)
			t->q[row[i]] = q[i];
	return t;
}

static void judge(const struct tests *t, uint32_t row, struct tm_doc_gpu_site *site)
{
	const struct tm_growth *g = t->growth[row];

	if (g == NULL || g->stage == TM_GROWTH_TOO_FEW_WINDOWS)
		return;
	site->growth_bytes_per_h =
		g->trend.slope * g->bytes_per_object * MS_PER_H / t->window_ms[row];
	site->growing = g->stage == TM_GROWTH_LEAK && site->reserved_by == NULL &&
			t->q[row] <= TM_ANALYSIS_FALSE_DISCOVERIES;
	if (site->growing)
		site->confidence = t->q[row] < 1 - TM_ANALYSIS_CONFIDENCE_MAX
					   ? TM_ANALYSIS_CONFIDENCE_MAX
					   : 1 - t->q[row];
}

/* --- rows ------------------------------------------------------------------------------------- */

static struct tm_doc_gpu_site *add_site(struct tm_analysis *a, struct tm_doc_gpu *sum,
					const struct tm_ledger_gpu *g)
{
	struct tm_doc_gpu_site *site = tm_document_add_gpu_site(a->doc, sum);

	site->site = id_of(a, g);
	site->reserved_by = cache_of(a, g);
	site->kind = site->reserved_by
			     ? tm_document_format(a->doc, "%s, reserved by a framework's cache",
						  sum->api)
			     : sum->api;
	site->live_bytes = g->live_bytes;
	site->live_objs = g->live_objects;
	site->peak = g->peak_bytes;
	site->alloc_objs = g->objects;
	site->alloc_bytes = g->bytes;
	site->context = g->context;
	site->tier = g->tier < TM_LEDGER_TIERS ? g->tier : 0;
	if (g->site != 1)
		site->stack = tm_analysis_stack_of(a, g->site, g->height);
	return site;
}

static void add_pool(struct tm_analysis *a, const struct tm_ledger_gpu_pool *from, const char *name,
		     uint64_t reserved, uint64_t used)
{
	if (reserved == 0)
		return;
	struct tm_doc_gpu_pool *p = tm_document_add(a->doc, TM_DOC_GPU_POOLS);
	p->dev = from->device;
	p->context = from->context;
	p->pool = name;
	p->idle_bytes = reserved > used ? reserved - used : 0;
	/* Whole blocks in use belong to the driver: only the idle ones are known. */
	if (used != TM_DOC_UNKNOWN) {
		p->reserved_bytes = reserved;
		p->used_bytes = used;
	} else {
		p->idle_bytes = reserved;
	}
}

static void add_pools(struct tm_analysis *a)
{
	const struct tm_ledger_gpu_pool *p = tm_ledger_at(a->ledger, TM_LEDGER_GPU_POOLS_AT);

	for (uint32_t i = 0; i < a->ledger->header.gpu_pools; i++, p++) {
		size_t first = a->doc->gpu_pools.count;

		if (p->context == 0)
			continue;
		add_pool(a, p, "slabs", p->slab_bytes, p->slab_live_bytes);
		add_pool(a, p, "chunks", p->vmm_bytes, p->vmm_live_bytes);
		add_pool(a, p, "whole blocks", p->cache_idle_bytes, TM_DOC_UNKNOWN);
		add_pool(a, p, "pinned host", p->host_idle_bytes, TM_DOC_UNKNOWN);
		if (first == a->doc->gpu_pools.count)
			continue;
		a->doc->gpu_pools.at[first].hits = p->hits;
		a->doc->gpu_pools.at[first].misses = p->misses;
	}
}

/*
 * Pinned pages are resident, but the kernel does not name them: in the balance they are part of the
 * program's or the device's mappings.
 */
static void add_pinned(struct tm_analysis *a)
{
	uint64_t bytes = 0, count = 0;

	for (size_t i = 0; i < a->doc->gpu.count; i++) {
		const struct tm_doc_gpu *g = &a->doc->gpu.at[i];

		if (g->api != kinds[TM_LEDGER_GPU_PINNED].api)
			continue;
		bytes += g->live_bytes;
		count += g->live_objs;
	}
	if (bytes == 0)
		return;
	struct tm_doc_mapping *m = tm_document_add(a->doc, TM_DOC_MAPPINGS);
	m->name = "pinned host memory that CUDA was asked for, in one of the above";
	m->bytes = m->mapped_bytes = bytes;
	m->count = count;
}

void tm_analysis_add_gpu(struct tm_analysis *a)
{
	const struct tm_ledger_gpu *g = tm_ledger_at(a->ledger, TM_LEDGER_GPU_AT);
	const struct tests *tests = a->ledger->header.gpu_rows ? test_rows(a) : NULL;

	for (uint32_t i = 0; i < a->ledger->header.gpu_rows; i++, g++) {
		if (g->site == 0 || g->objects == 0)
			continue;
		struct tm_doc_gpu *sum = gpu_of(a->doc, g);

		sum->live_bytes += g->live_bytes;
		sum->peak += g->peak_bytes;
		sum->live_objs += g->live_objects;
		sum->alloc_objs += g->objects;
		sum->alloc_bytes += g->bytes;
		judge(tests, i, add_site(a, sum, g));
	}
	add_pinned(a);
	add_pools(a);
}
