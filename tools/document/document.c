/* SPDX-License-Identifier: MIT */
#include "tools/document/document.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/version.h"
#include "tools/cmd.h"
#include "tools/document/document_fields.h"

#define CHUNK_BYTES ((size_t)64 << 10)

struct tm_doc_chunk {
	struct tm_doc_chunk *next;
	size_t used, bytes;
	_Alignas(max_align_t) unsigned char data[];
};

void *tm_document_alloc(struct tm_document *doc, size_t bytes)
{
	struct tm_doc_chunk *c = doc->chunks;
	size_t rounded = (bytes + 15) & ~(size_t)15;

	if (rounded < bytes || rounded > SIZE_MAX / 2)
		c = NULL, rounded = SIZE_MAX / 2;
	if (c == NULL || c->bytes - c->used < rounded) {
		size_t room = rounded > CHUNK_BYTES ? rounded : CHUNK_BYTES;

		c = calloc(1, sizeof(*c) + room);
		if (c == NULL) {
			tm_say("out of memory for a report");
			exit(TM_EXIT_TROUBLE);
		}
		c->bytes = room;
		c->next = doc->chunks;
		doc->chunks = c;
	}
	c->used += rounded;
	return c->data + c->used - rounded;
}

const char *tm_document_text(struct tm_document *doc, const char *text)
{
	if (text == NULL)
		return NULL;
	size_t bytes = strlen(text) + 1;
	return memcpy(tm_document_alloc(doc, bytes), text, bytes);
}

const char *tm_document_format(struct tm_document *doc, const char *format, ...)
{
	va_list args, again;
	char *text;

	va_start(args, format);
	va_copy(again, args);
	int len = vsnprintf(NULL, 0, format, args);
	va_end(args);
	text = tm_document_alloc(doc, len > 0 ? (size_t)len + 1 : 1);
	if (len > 0)
		vsnprintf(text, (size_t)len + 1, format, again);
	va_end(again);
	return text;
}

/* Appends an element to a list, whose fields are laid out like struct tm_any_list. */
static void *append(struct tm_document *doc, void *list, size_t bytes)
{
	struct tm_any_list l;

	memcpy(&l, list, sizeof(l));
	if (l.count == l.room) {
		size_t room = l.room ? l.room * 2 : 4;
		void *wider =
			tm_document_alloc(doc, room > SIZE_MAX / bytes ? SIZE_MAX : room * bytes);

		if (l.count)
			memcpy(wider, l.at, l.count * bytes);
		l.at = wider;
		l.room = room;
	}
	l.count++;
	memcpy(list, &l, sizeof(l));
	return (char *)l.at + (l.count - 1) * bytes;
}

void *tm_fields_append(struct tm_document *doc, void *list, const struct tm_type *type)
{
	void *row = append(doc, list, type->bytes);

	tm_fields_blank(type, row);
	return row;
}

/* The field with that name, of the document or of an object in it. */
static const struct tm_field *field_of(const struct tm_type *type, const char *name)
{
	for (size_t i = 0; i < type->count; i++) {
		if (strcmp(type->fields[i].name, name) == 0)
			return &type->fields[i];
	}
	return NULL;
}

void *tm_document_add(struct tm_document *doc, enum tm_doc_list list)
{
	static const char *const names[] = {
		[TM_DOC_MAPPINGS] = "mappings",
		[TM_DOC_TIERS] = "tiers",
		[TM_DOC_CLASSES] = "classes",
		[TM_DOC_SIZES] = "sizes",
		[TM_DOC_POOLS] = "pools",
		[TM_DOC_PAGES] = "pages",
		[TM_DOC_MODULES] = "modules",
		[TM_DOC_FRAMES] = "frames",
		[TM_DOC_STACKS] = "stacks",
		[TM_DOC_SITES] = "sites",
		[TM_DOC_LEAKS] = "leaks",
		[TM_DOC_WATCH] = "watch",
		[TM_DOC_SERIES] = "series",
		[TM_DOC_GPU] = "gpu",
		[TM_DOC_GPU_POOLS] = "gpu_pools",
		[TM_DOC_EVENTS] = "events",
		[TM_DOC_SUGGESTIONS] = "suggestions",
	};
	const struct tm_type *type = &tm_type_document;
	char *object = (char *)doc;
	void *row;

	if (list == TM_DOC_PAGES || list == TM_DOC_SERIES) {
		const struct tm_field *outer =
			field_of(type, list == TM_DOC_PAGES ? "hugepages" : "timeline");
		object += outer->offset;
		type = outer->type;
	}
	const struct tm_field *field = field_of(type, names[list]);
	row = tm_fields_append(doc, object + field->offset, field->type);
	if (list == TM_DOC_MODULES)
		((struct tm_doc_module *)row)->id = doc->modules.count - 1;
	else if (list == TM_DOC_FRAMES)
		((struct tm_doc_frame *)row)->id = doc->frames.count - 1;
	else if (list == TM_DOC_STACKS)
		((struct tm_doc_stack *)row)->id = doc->stacks.count - 1;
	return row;
}

struct tm_doc_gpu_site *tm_document_add_gpu_site(struct tm_document *doc, struct tm_doc_gpu *gpu)
{
	return tm_fields_append(doc, &gpu->sites,
				field_of(field_of(&tm_type_document, "gpu")->type, "sites")->type);
}

void tm_document_push_number(struct tm_document *doc, struct tm_doc_numbers *list, uint64_t value)
{
	*(uint64_t *)append(doc, list, sizeof(value)) = value;
}

void tm_document_push_real(struct tm_document *doc, struct tm_doc_reals *list, double value)
{
	*(double *)append(doc, list, sizeof(value)) = value;
}

void tm_document_push_text(struct tm_document *doc, struct tm_doc_texts *list, const char *text)
{
	const char *copy = tm_document_text(doc, text);

	*(const char **)append(doc, list, sizeof(copy)) = copy;
}

void tm_document_init(struct tm_document *doc)
{
	memset(doc, 0, sizeof(*doc));
	tm_fields_blank(&tm_type_document, doc);
	doc->schema = TM_DOC_SCHEMA;
	doc->tool.version = tm_version_string();
}

void tm_document_clear(struct tm_document *doc)
{
	while (doc->chunks) {
		struct tm_doc_chunk *next = doc->chunks->next;

		free(doc->chunks);
		doc->chunks = next;
	}
	memset(doc, 0, sizeof(*doc));
}

struct tm_doc_site *tm_document_site(const struct tm_document *doc, const char *id)
{
	for (size_t i = 0; id && i < doc->sites.count; i++) {
		if (doc->sites.at[i].id && strcmp(doc->sites.at[i].id, id) == 0)
			return &doc->sites.at[i];
	}
	return NULL;
}

static const char *word(const char *const *words, unsigned value)
{
	for (unsigned i = 1; *words; words++, i++) {
		if (i == value)
			return *words;
	}
	return "";
}

const char *tm_document_tier_name(enum tm_doc_tier tier)
{
	return word(tm_words_tier, tier);
}

const char *tm_document_leak_class_name(enum tm_doc_leak_class class)
{
	return word(tm_words_leak_class, class);
}

const char *tm_document_ended_name(enum tm_doc_ended ended)
{
	return word(tm_words_ended, ended);
}

const char *tm_document_authority_name(enum tm_doc_authority authority)
{
	return word(tm_words_authority, authority);
}

static const char *check_stacks(struct tm_document *doc)
{
	for (size_t i = 0; i < doc->modules.count; i++) {
		if (doc->modules.at[i].id != i)
			return tm_document_format(doc, "modules[%zu].id is not its place", i);
	}
	for (size_t i = 0; i < doc->frames.count; i++) {
		const struct tm_doc_frame *f = &doc->frames.at[i];

		if (f->id != i)
			return tm_document_format(doc, "frames[%zu].id is not its place", i);
		if (f->module != TM_DOC_NOWHERE && f->module >= doc->modules.count)
			return tm_document_format(doc, "frames[%zu].module is in no list", i);
		if (f->inline_of != TM_DOC_NOWHERE && f->inline_of >= doc->frames.count)
			return tm_document_format(doc, "frames[%zu].inline_of is in no list", i);
	}
	for (size_t i = 0; i < doc->stacks.count; i++) {
		const struct tm_doc_stack *s = &doc->stacks.at[i];

		if (s->id != i)
			return tm_document_format(doc, "stacks[%zu].id is not its place", i);
		for (size_t k = 0; k < s->frames.count; k++) {
			if (s->frames.at[k] >= doc->frames.count)
				return tm_document_format(
					doc, "stacks[%zu].frames[%zu] is in no list", i, k);
		}
	}
	return NULL;
}

static const char *check_timeline(struct tm_document *doc)
{
	const struct tm_doc_timeline *t = &doc->timeline;

	for (size_t i = 1; i < t->t.count; i++) {
		if (!(t->t.at[i] > t->t.at[i - 1]))
			return tm_document_format(doc, "timeline.t[%zu] does not rise", i);
	}
	for (size_t i = 0; i < t->series.count; i++) {
		if (t->series.at[i].name == NULL)
			return tm_document_format(doc, "timeline.series %zu has no name", i);
		if (t->series.at[i].values.count != t->t.count)
			return tm_document_format(
				doc, "timeline.series.%s has %zu values for %zu times",
				t->series.at[i].name, t->series.at[i].values.count, t->t.count);
	}
	return NULL;
}

static const char *check_words(struct tm_document *doc, const struct tm_type *type,
			       const void *object);

static const char *check_word(struct tm_document *doc, const struct tm_field *f, const void *object)
{
	struct tm_any_list list;
	const char *wrong = NULL;
	unsigned value;

	switch (f->kind) {
	case TM_FIELD_WORD:
		memcpy(&value, (const char *)object + f->offset, sizeof(value));
		if (value != 0 && *word(f->words, value) == '\0')
			return tm_document_format(doc, "'%s' has the unknown value %u", f->name,
						  value);
		return NULL;
	case TM_FIELD_OBJECT: return check_words(doc, f->type, (const char *)object + f->offset);
	case TM_FIELD_ROWS:
		list = tm_fields_list(object, f);
		for (size_t i = 0; i < list.count && wrong == NULL; i++)
			wrong = check_words(doc, f->type, (char *)list.at + i * f->type->bytes);
		return wrong;
	default: return NULL;
	}
}

static const char *check_words(struct tm_document *doc, const struct tm_type *type,
			       const void *object)
{
	const char *wrong = NULL;

	for (size_t i = 0; i < type->count && wrong == NULL; i++)
		wrong = check_word(doc, &type->fields[i], object);
	return wrong;
}

static const char *check_gpu(struct tm_document *doc, size_t i)
{
	for (size_t k = 0; k < doc->gpu.at[i].sites.count; k++) {
		uint32_t stack = doc->gpu.at[i].sites.at[k].stack;

		if (stack != TM_DOC_NOWHERE && stack >= doc->stacks.count)
			return tm_document_format(doc, "gpu[%zu].sites[%zu].stack is in no list", i,
						  k);
	}
	return NULL;
}

const char *tm_document_check(struct tm_document *doc)
{
	const char *wrong = check_stacks(doc);

	if (wrong == NULL)
		wrong = check_timeline(doc);
	if (wrong == NULL)
		wrong = check_words(doc, &tm_type_document, doc);
	for (size_t i = 0; i < doc->sites.count && wrong == NULL; i++) {
		const struct tm_doc_site *s = &doc->sites.at[i];

		if (s->id == NULL)
			wrong = tm_document_format(doc, "sites[%zu].id is null", i);
		else if (s->stack != TM_DOC_NOWHERE && s->stack >= doc->stacks.count)
			wrong = tm_document_format(doc, "sites[%zu].stack is in no list", i);
	}
	for (size_t i = 0; i < doc->gpu.count && wrong == NULL; i++)
		wrong = check_gpu(doc, i);
	for (size_t i = 0; i < doc->leaks.count && wrong == NULL; i++) {
		if (tm_document_site(doc, doc->leaks.at[i].site) == NULL)
			wrong = tm_document_format(doc, "leaks[%zu].site is in no list", i);
	}
	return wrong;
}
