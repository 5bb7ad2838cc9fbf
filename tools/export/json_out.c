/* SPDX-License-Identifier: MIT */
/*
 * json_out: writes the document as JSON: every key, in the order of the table of fields, one row
 * per line, so that documents can be compared by line. Numbers are independent of the locale.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "tools/document/document_fields.h"
#include "tools/document/utf8.h"
#include "tools/export/export.h"

/* From here on a number is not exact in every reader. */
#define EXACT_LIMIT (UINT64_C(1) << 53)

void tm_json_put_text(FILE *out, const char *text)
{
	if (text == NULL) {
		fputs("null", out);
		return;
	}
	putc('"', out);
	for (const unsigned char *c = (const unsigned char *)text; *c;) {
		size_t len = tm_utf8_length(c);

		/* invalid UTF-8: show the byte as the code point of the same number */
		if (len == 0) {
			fprintf(out, "\\u%04x", *c++);
			continue;
		}
		if (*c == '"' || *c == '\\')
			fprintf(out, "\\%c", *c);
		else if (*c == '\n')
			fputs("\\n", out);
		else if (*c == '\t')
			fputs("\\t", out);
		else if (*c < 0x20 || *c == 0x7f)
			fprintf(out, "\\u%04x", *c);
		else
			fwrite(c, 1, len, out);
		c += len;
	}
	putc('"', out);
}

static void put_count(FILE *out, uint64_t value)
{
	if (value == TM_DOC_UNKNOWN)
		fputs("null", out);
	else
		fprintf(out, value < EXACT_LIMIT ? "%" PRIu64 : "\"%" PRIu64 "\"", value);
}

static void put_delta(FILE *out, int64_t value)
{
	uint64_t size = value < 0 ? -(uint64_t)value : (uint64_t)value;

	if (value == TM_DOC_UNKNOWN_DELTA)
		fputs("null", out);
	else
		fprintf(out, size < EXACT_LIMIT ? "%" PRId64 : "\"%" PRId64 "\"", value);
}

static void put_real(FILE *out, double value)
{
	if (!isfinite(value))
		fputs("null", out);
	else if (value == floor(value) && fabs(value) < (double)EXACT_LIMIT)
		fprintf(out, "%.0f", value + 0.0); /* turns -0 into 0 */
	else
		/* Unix seconds need their milliseconds: more digits. */
		fprintf(out, value > -1e6 && value < 1e6 ? "%.9g" : "%.14g", value);
}

static void put_object(FILE *out, const struct tm_type *type, const void *object, int depth);

static void put_numbers(FILE *out, const struct tm_doc_numbers *list)
{
	putc('[', out);
	for (size_t i = 0; i < list->count; i++) {
		if (i)
			putc(',', out);
		put_count(out, list->at[i]);
	}
	putc(']', out);
}

static void put_reals(FILE *out, const struct tm_doc_reals *list)
{
	putc('[', out);
	for (size_t i = 0; i < list->count; i++) {
		if (i)
			putc(',', out);
		put_real(out, list->at[i]);
	}
	putc(']', out);
}

static void put_texts(FILE *out, const struct tm_doc_texts *list)
{
	putc('[', out);
	for (size_t i = 0; i < list->count; i++) {
		if (i)
			putc(',', out);
		tm_json_put_text(out, list->at[i]);
	}
	putc(']', out);
}

static void put_rows(FILE *out, const struct tm_type *type, struct tm_any_list list, int depth)
{
	putc('[', out);
	for (size_t i = 0; i < list.count; i++) {
		fputs(i ? ",\n" : "\n", out);
		put_object(out, type, (const char *)list.at + i * type->bytes, depth + 1);
	}
	fputs(list.count ? "\n]" : "]", out);
}

static void put_series(FILE *out, struct tm_any_list list)
{
	const struct tm_doc_series *series = list.at;

	putc('{', out);
	for (size_t i = 0; i < list.count; i++) {
		fputs(i ? ",\n" : "\n", out);
		tm_json_put_text(out, series[i].name);
		putc(':', out);
		put_reals(out, &series[i].values);
	}
	putc('}', out);
}

static void put_word(FILE *out, const char *const *words, unsigned value)
{
	unsigned i = 1;

	while (*words && i < value)
		words++, i++;
	tm_json_put_text(out, value ? *words : NULL);
}

static uint64_t number_at(const void *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static uint32_t word_at(const void *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static void put_stamp(FILE *out, uint64_t value)
{
	if (value == TM_DOC_UNKNOWN)
		fputs("null", out);
	else
		fprintf(out, "\"%" PRIu64 "\"", value);
}

static void put_address(FILE *out, uint64_t value)
{
	if (value == TM_DOC_UNKNOWN)
		fputs("null", out);
	else
		fprintf(out, "\"0x%" PRIx64 "\"", value);
}

static void put_value(FILE *out, const struct tm_field *f, const void *object, int depth)
{
	const void *at = (const char *)object + f->offset;

	switch (f->kind) {
	case TM_FIELD_COUNT: put_count(out, number_at(at)); break;
	case TM_FIELD_DELTA: put_delta(out, (int64_t)number_at(at)); break;
	case TM_FIELD_STAMP: put_stamp(out, number_at(at)); break;
	case TM_FIELD_ADDRESS: put_address(out, number_at(at)); break;
	case TM_FIELD_REAL: put_real(out, *(const double *)at); break;
	case TM_FIELD_FLAG: fputs(*(const bool *)at ? "true" : "false", out); break;
	case TM_FIELD_TEXT: tm_json_put_text(out, *(const char *const *)at); break;
	case TM_FIELD_WORD: put_word(out, f->words, word_at(at)); break;
	case TM_FIELD_NUMBERS: put_numbers(out, at); break;
	case TM_FIELD_REALS: put_reals(out, at); break;
	case TM_FIELD_TEXTS: put_texts(out, at); break;
	case TM_FIELD_OBJECT: put_object(out, f->type, at, depth + 1); break;
	case TM_FIELD_ROWS: put_rows(out, f->type, tm_fields_list(object, f), depth); break;
	case TM_FIELD_SERIES: put_series(out, tm_fields_list(object, f)); break;
	case TM_FIELD_INDEX:
		put_count(out, word_at(at) == TM_DOC_NOWHERE ? TM_DOC_UNKNOWN : word_at(at));
		break;
	}
}

static void put_object(FILE *out, const struct tm_type *type, const void *object, int depth)
{
	putc('{', out);
	for (size_t i = 0; i < type->count; i++) {
		if (i)
			fputs(depth ? "," : ",\n", out);
		fprintf(out, "\"%s\":", type->fields[i].name);
		put_value(out, &type->fields[i], object, depth);
	}
	putc('}', out);
}

bool tm_document_write_json(const struct tm_document *doc, FILE *out)
{
	put_object(out, &tm_type_document, doc, 0);
	putc('\n', out);
	return !ferror(out);
}
