/* SPDX-License-Identifier: MIT */
#include "tools/analysis/combine_parts.h"

#include <stdlib.h>
#include <string.h>

/* --- sites by id ------------------------------------------------------------------------------ */

static int by_id(const void *a, const void *b)
{
	return strcmp((*(const struct tm_doc_site *const *)a)->id,
		      (*(const struct tm_doc_site *const *)b)->id);
}

struct tm_combine_index tm_combine_index(struct tm_document *memory, const struct tm_document *doc)
{
	struct tm_combine_index i = {NULL, doc->sites.count};

	i.at = tm_document_alloc(memory, (i.count + 1) * sizeof(*i.at));
	for (size_t k = 0; k < i.count; k++)
		i.at[k] = &doc->sites.at[k];
	qsort(i.at, i.count, sizeof(*i.at), by_id);
	return i;
}

/* The same site in another run may have needed more digits to be unique. */
static bool is_same(const char *a, const char *b)
{
	size_t x = strlen(a), y = strlen(b);

	return strncmp(a, b, x < y ? x : y) == 0;
}

const struct tm_doc_site *tm_combine_find(const struct tm_combine_index *i, const char *id)
{
	size_t low = 0, high = i->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (strcmp(i->at[middle]->id, id) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < i->count && is_same(i->at[low]->id, id))
		return i->at[low];
	if (low > 0 && is_same(i->at[low - 1]->id, id))
		return i->at[low - 1];
	return NULL;
}

/* --- stacks of another document --------------------------------------------------------------- */

void tm_combine_add_modules(struct tm_document *doc, const struct tm_document *from,
			    struct tm_combine_places *places)
{
	places->module = (uint32_t)doc->modules.count;
	places->frame = (uint32_t)doc->frames.count;
	for (size_t i = 0; i < from->modules.count; i++) {
		struct tm_doc_module *m = tm_document_add(doc, TM_DOC_MODULES);
		uint64_t id = m->id;

		*m = from->modules.at[i];
		m->id = id;
		m->path = tm_document_text(doc, m->path);
		m->build_id = tm_document_text(doc, m->build_id);
	}
	for (size_t i = 0; i < from->frames.count; i++) {
		struct tm_doc_frame *f = tm_document_add(doc, TM_DOC_FRAMES);
		uint64_t id = f->id;

		*f = from->frames.at[i];
		f->id = id;
		f->fn = tm_document_text(doc, f->fn);
		f->symbol = tm_document_text(doc, f->symbol);
		f->file = tm_document_text(doc, f->file);
		if (f->module != TM_DOC_NOWHERE)
			f->module += places->module;
		if (f->inline_of != TM_DOC_NOWHERE)
			f->inline_of += places->frame;
	}
}

static uint32_t add_stack(struct tm_document *doc, const struct tm_document *from, uint32_t stack,
			  const struct tm_combine_places *places)
{
	if (stack >= from->stacks.count)
		return TM_DOC_NOWHERE;
	struct tm_doc_stack *s = tm_document_add(doc, TM_DOC_STACKS);
	const struct tm_doc_stack *old = &from->stacks.at[stack];

	s->truncated = old->truncated;
	for (size_t i = 0; i < old->frames.count; i++)
		tm_document_push_number(doc, &s->frames, old->frames.at[i] + places->frame);
	return (uint32_t)s->id;
}

struct tm_doc_site *tm_combine_add_site(struct tm_document *doc, const struct tm_document *from,
					const struct tm_doc_site *old,
					const struct tm_combine_places *places)
{
	uint32_t stack = add_stack(doc, from, old->stack, places);
	struct tm_doc_site *s = tm_document_add(doc, TM_DOC_SITES);

	s->id = tm_document_text(doc, old->id);
	s->stack = stack;
	s->tier = old->tier;
	s->height = old->height;
	s->alloc_objs = s->alloc_bytes = s->free_objs = s->free_bytes = 0;
	s->live_objs = s->live_bytes = s->slot_bytes = 0;
	s->est_rel_err = old->est_rel_err;
	return s;
}

/* --- device memory ---------------------------------------------------------------------------- */

bool tm_combine_is_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static struct tm_doc_gpu *find_gpu(const struct tm_document *doc, const struct tm_doc_gpu *like)
{
	for (size_t i = 0; i < doc->gpu.count; i++) {
		if (doc->gpu.at[i].dev == like->dev &&
		    tm_combine_is_text(doc->gpu.at[i].api, like->api))
			return &doc->gpu.at[i];
	}
	return NULL;
}

struct tm_doc_gpu *tm_combine_same_gpu(struct tm_document *doc, const struct tm_doc_gpu *like)
{
	struct tm_doc_gpu *g = find_gpu(doc, like);

	if (g)
		return g;
	g = tm_document_add(doc, TM_DOC_GPU);
	g->dev = like->dev;
	g->api = tm_document_text(doc, like->api);
	g->memory = tm_document_text(doc, like->memory);
	g->live_bytes = g->peak = g->live_objs = g->alloc_objs = g->alloc_bytes = 0;
	return g;
}

struct tm_doc_gpu_site *tm_combine_add_gpu_site(struct tm_document *doc, struct tm_doc_gpu *g,
						const struct tm_document *from,
						const struct tm_doc_gpu_site *old,
						const struct tm_combine_places *places)
{
	uint32_t stack = add_stack(doc, from, old->stack, places);
	struct tm_doc_gpu_site *s = tm_document_add_gpu_site(doc, g);

	*s = *old;
	s->stack = stack;
	s->site = tm_document_text(doc, old->site);
	s->kind = tm_document_text(doc, old->kind);
	s->reserved_by = tm_document_text(doc, old->reserved_by);
	return s;
}
