/* SPDX-License-Identifier: MIT */
/*
 * json_schema: writes the table of fields as a JSON Schema (draft 2020-12). The published copy,
 * tools/document/report-1.schema.json, is this output.
 */
#include <string.h>

#include "tools/document/document_fields.h"

static void put_value(FILE *out, const struct tm_field *f);

static void indent(FILE *out, int depth)
{
	putc('\n', out);
	for (int i = 0; i < depth; i++)
		putc('\t', out);
}

static void put_list_of(FILE *out, const char *item)
{
	fprintf(out, "\"type\": \"array\", \"items\": {\"$ref\": \"#/$defs/%s\"}", item);
}

static void put_value(FILE *out, const struct tm_field *f)
{
	switch (f->kind) {
	case TM_FIELD_COUNT: fputs("\"$ref\": \"#/$defs/count\"", out); break;
	case TM_FIELD_DELTA: fputs("\"$ref\": \"#/$defs/delta\"", out); break;
	case TM_FIELD_REAL: fputs("\"$ref\": \"#/$defs/real\"", out); break;
	case TM_FIELD_FLAG: fputs("\"type\": \"boolean\"", out); break;
	case TM_FIELD_STAMP: fputs("\"$ref\": \"#/$defs/stamp\"", out); break;
	case TM_FIELD_ADDRESS: fputs("\"$ref\": \"#/$defs/address\"", out); break;
	case TM_FIELD_INDEX: fputs("\"$ref\": \"#/$defs/index\"", out); break;
	case TM_FIELD_TEXT: fputs("\"type\": [\"string\", \"null\"]", out); break;
	case TM_FIELD_NUMBERS: put_list_of(out, "count"); break;
	case TM_FIELD_REALS: put_list_of(out, "real"); break;
	case TM_FIELD_TEXTS:
		fputs("\"type\": \"array\", \"items\": {\"type\": \"string\"}", out);
		break;
	case TM_FIELD_OBJECT: fprintf(out, "\"$ref\": \"#/$defs/%s\"", f->type->name); break;
	case TM_FIELD_ROWS: put_list_of(out, f->type->name); break;
	case TM_FIELD_SERIES:
		fputs("\"type\": \"object\", \"additionalProperties\": {\"type\": \"array\", "
		      "\"items\": {\"$ref\": \"#/$defs/real\"}}",
		      out);
		break;
	case TM_FIELD_WORD:
		fputs("\"enum\": [", out);
		for (size_t i = 0; f->words[i]; i++)
			fprintf(out, "\"%s\", ", f->words[i]);
		fputs("null]", out);
		break;
	}
}

/* Writes "properties" and "required" of a type, as members of the current schema. */
static void put_type(FILE *out, const struct tm_type *type, int depth)
{
	indent(out, depth);
	fputs("\"type\": \"object\",", out);
	indent(out, depth);
	fputs("\"properties\": {", out);
	for (size_t i = 0; i < type->count; i++) {
		const struct tm_field *f = &type->fields[i];

		indent(out, depth + 1);
		fprintf(out, "\"%s\": {", f->name);
		if (strcmp(f->name, "schema") == 0)
			fputs("\"const\": \"" TM_DOC_SCHEMA "\"", out);
		else
			put_value(out, f);
		if (f->about)
			fprintf(out, ", \"description\": \"%s\"", f->about);
		fputs(i + 1 < type->count ? "}," : "}", out);
	}
	indent(out, depth);
	fputs("},", out);
	indent(out, depth);
	fputs("\"required\": [", out);
	for (size_t i = 0; i < type->count; i++)
		fprintf(out, "%s\"%s\"", i ? ", " : "", type->fields[i].name);
	putc(']', out);
}

/* Writes every type below this one, once each: only balance is used by two types. */
static void put_types_below(FILE *out, const struct tm_type *type)
{
	for (size_t i = 0; i < type->count; i++) {
		const struct tm_field *f = &type->fields[i];

		if (f->type == NULL || f->kind == TM_FIELD_SERIES || strcmp(f->name, "base") == 0)
			continue;
		fprintf(out, ",\n\t\t\"%s\": {", f->type->name);
		put_type(out, f->type, 3);
		fputs("\n\t\t}", out);
		put_types_below(out, f->type);
	}
}

bool tm_fields_write_schema(FILE *out)
{
	fputs("{\n\t\"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n"
	      "\t\"$id\": \"urn:tiermalloc:report:1\",\n"
	      "\t\"title\": \"" TM_DOC_SCHEMA "\",\n"
	      "\t\"description\": \"What 'tiermalloc report --json' prints about one process. Every key "
	      "is always there; what is not known is null or an empty list. Keys are only ever "
	      "added.\",",
	      out);
	put_type(out, &tm_type_document, 1);
	fputs(",\n\t\"$defs\": {"
	      "\n\t\t\"count\": {\"description\": \"from 2^53 on a string of digits\", \"anyOf\": "
	      "[{\"type\": \"integer\", \"minimum\": 0, \"exclusiveMaximum\": 9007199254740992}, "
	      "{\"type\": \"string\", \"pattern\": \"^[0-9]+$\"}, {\"type\": \"null\"}]},"
	      "\n\t\t\"delta\": {\"description\": \"from 2^53 on a string of digits\", \"anyOf\": "
	      "[{\"type\": \"integer\"}, {\"type\": \"string\", \"pattern\": \"^-?[0-9]+$\"}, "
	      "{\"type\": \"null\"}]},"
	      "\n\t\t\"real\": {\"type\": [\"number\", \"null\"]},"
	      "\n\t\t\"index\": {\"description\": \"place in a list, from 0\", \"type\": [\"integer\", "
	      "\"null\"], \"minimum\": 0},"
	      "\n\t\t\"stamp\": {\"description\": \"nanoseconds\", \"type\": [\"string\", \"null\"], "
	      "\"pattern\": \"^[0-9]+$\"},"
	      "\n\t\t\"address\": {\"type\": [\"string\", \"null\"], \"pattern\": \"^0x[0-9a-f]+$\"}",
	      out);
	put_types_below(out, &tm_type_document);
	fputs("\n\t}\n}\n", out);
	return !ferror(out);
}
