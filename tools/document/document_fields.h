/* SPDX-License-Identifier: MIT */
/*
 * document_fields: the table of the document's fields, with their names and types in JSON. Reading,
 * writing, the JSON Schema and the initialisation of rows all iterate over it. Pure.
 */
#ifndef TM_TOOLS_DOCUMENT_FIELDS_H
#define TM_TOOLS_DOCUMENT_FIELDS_H

#include "tools/document/document.h"

enum tm_field_kind {
	TM_FIELD_COUNT,   /* uint64_t; a number, or from 2^53 on a string of digits */
	TM_FIELD_DELTA,   /* int64_t, likewise */
	TM_FIELD_REAL,    /* double */
	TM_FIELD_FLAG,    /* bool */
	TM_FIELD_STAMP,   /* uint64_t, a string of digits */
	TM_FIELD_ADDRESS, /* uint64_t, "0x..." */
	TM_FIELD_INDEX,   /* uint32_t */
	TM_FIELD_TEXT,    /* const char * */
	TM_FIELD_WORD,    /* an enum; its words start at 1 */
	TM_FIELD_NUMBERS, /* struct tm_doc_numbers */
	TM_FIELD_REALS,   /* struct tm_doc_reals; NAN is null */
	TM_FIELD_TEXTS,   /* struct tm_doc_texts */
	TM_FIELD_OBJECT,  /* a struct of `type` */
	TM_FIELD_ROWS,    /* TM_DOC_LIST of `type` */
	TM_FIELD_SERIES,  /* TM_DOC_LIST of tm_doc_series: an object, names to lists */
};

struct tm_type;

struct tm_field {
	const char *name;
	enum tm_field_kind kind;
	size_t offset;
	const char *const *words;   /* terminated by NULL */
	const struct tm_type *type; /* of objects and rows */
	const char *about;          /* unit and meaning, for the schema; may be NULL */
};

struct tm_type {
	const char *name;
	size_t bytes;
	const struct tm_field *fields;
	size_t count;
};

/* Layout that all lists of the document share, without the element type. */
struct tm_any_list {
	void *at;
	size_t count, room;
};

extern const struct tm_type tm_type_document;
extern const struct tm_type tm_type_series;

extern const char *const tm_words_tier[],
	*const tm_words_leak_class[], *const tm_words_ended[], *const tm_words_authority[];

/* Makes every field unknown and every list empty. */
void tm_fields_blank(const struct tm_type *type, void *object);

struct tm_any_list tm_fields_list(const void *object, const struct tm_field *field);
/* Appends an element; the list may belong to any object of the document. */
void *tm_fields_append(struct tm_document *doc, void *list, const struct tm_type *type);

/* Writes the JSON Schema of the fields. tools/document/json_schema.c */
bool tm_fields_write_schema(FILE *out);

#endif
