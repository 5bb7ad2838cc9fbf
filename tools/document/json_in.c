/* SPDX-License-Identifier: MIT */
/*
 * json_in: reads the document from JSON, by the table of fields. Keys unknown to the table are
 * skipped (a later release may add some), missing keys stay unknown; a value of a wrong type is
 * refused with its place. Nothing in the text is trusted.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "tools/cmd.h"
#include "tools/document/document_fields.h"

/* Place of a value in the text, as in sites[3].live_bytes. */
struct place {
	const struct place *up;
	const char *name; /* NULL: an element of a list */
	size_t index;
};

struct reader {
	struct tm_document *doc;
	const char *path;
};

static size_t put_place(const struct place *p, char *buf, size_t size)
{
	size_t len = p->up ? put_place(p->up, buf, size) : 0;

	if (len >= size)
		return len;
	if (p->name == NULL)
		len += (size_t)snprintf(buf + len, size - len, "[%zu]", p->index);
	else
		len += (size_t)snprintf(buf + len, size - len, "%s%s", len ? "." : "", p->name);
	return len < size ? len : size - 1;
}

static int refuse(const struct reader *r, const struct place *p, const char *wanted)
{
	char where[256] = "";

	put_place(p, where, sizeof(where));
	tm_say("'%s' is no report: %s is no %s", r->path, where, wanted);
	return -1;
}

/* Parses a string that consists of digits in the given base. */
static bool digits(const char *text, int base, uint64_t *ret_value)
{
	char *end;

	if (base == 16 && strncmp(text, "0x", 2) != 0)
		return false;
	if (base == 10 && (*text < '0' || *text > '9'))
		return false;
	errno = 0;
	*ret_value = strtoull(text, &end, base);
	return errno == 0 && *end == '\0' && end != text;
}

static bool read_count(const json_t *value, int base, uint64_t *ret_value)
{
	if (json_is_null(value)) {
		*ret_value = TM_DOC_UNKNOWN;
		return true;
	}
	if (json_is_string(value))
		return digits(json_string_value(value), base, ret_value);
	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return false;
	*ret_value = (uint64_t)json_integer_value(value);
	return true;
}

static bool read_delta(const json_t *value, int64_t *ret_value)
{
	char *end;

	if (json_is_null(value)) {
		*ret_value = TM_DOC_UNKNOWN_DELTA;
		return true;
	}
	if (json_is_integer(value)) {
		*ret_value = json_integer_value(value);
		return true;
	}
	if (!json_is_string(value))
		return false;
	errno = 0;
	*ret_value = strtoll(json_string_value(value), &end, 10);
	return errno == 0 && *end == '\0' && end != json_string_value(value);
}

static bool read_real(const json_t *value, double *ret_value)
{
	*ret_value = json_is_null(value) ? (double)NAN : json_number_value(value);
	return json_is_null(value) || json_is_number(value);
}

static bool read_index(const json_t *value, uint32_t *ret_value)
{
	uint64_t wide;

	if (json_is_string(value) || !read_count(value, 10, &wide))
		return false;
	if (wide != TM_DOC_UNKNOWN && wide >= TM_DOC_NOWHERE)
		return false;
	*ret_value = wide == TM_DOC_UNKNOWN ? TM_DOC_NOWHERE : (uint32_t)wide;
	return true;
}

static bool read_word(const json_t *value, const char *const *words, unsigned *ret_value)
{
	*ret_value = 0;
	if (json_is_null(value))
		return true;
	for (unsigned i = 0; json_is_string(value) && words[i]; i++) {
		if (strcmp(words[i], json_string_value(value)) == 0) {
			*ret_value = i + 1;
			return true;
		}
	}
	return false;
}

static int read_list(const struct reader *r, const struct tm_field *f, void *at,
		     const json_t *value, const struct place *here)
{
	struct place element = {.up = here};
	const json_t *e;

	if (!json_is_array(value))
		return refuse(r, here, "list");
	json_array_foreach(value, element.index, e)
	{
		uint64_t number;
		double real;

		if (f->kind == TM_FIELD_NUMBERS) {
			if (!read_count(e, 10, &number))
				return refuse(r, &element, "number");
			tm_document_push_number(r->doc, at, number);
		} else if (f->kind == TM_FIELD_REALS) {
			if (!read_real(e, &real))
				return refuse(r, &element, "number");
			tm_document_push_real(r->doc, at, real);
		} else {
			if (!json_is_string(e))
				return refuse(r, &element, "text");
			tm_document_push_text(r->doc, at, json_string_value(e));
		}
	}
	return 0;
}

static int read_object(const struct reader *r, const struct tm_type *type, void *object,
		       const json_t *value, const struct place *here);

static int read_rows(const struct reader *r, const struct tm_field *f, void *at,
		     const json_t *value, const struct place *here)
{
	struct place element = {.up = here};
	const json_t *e;

	if (!json_is_array(value))
		return refuse(r, here, "list");
	json_array_foreach(value, element.index, e)
	{
		void *row = tm_fields_append(r->doc, at, f->type);

		if (read_object(r, f->type, row, e, &element) != 0)
			return -1;
	}
	return 0;
}

static int read_series(const struct reader *r, void *at, const json_t *value,
		       const struct place *here)
{
	static const struct tm_field reals = {.kind = TM_FIELD_REALS};
	const char *name;
	json_t *values;

	if (!json_is_object(value))
		return refuse(r, here, "object");
	json_object_foreach((json_t *)(uintptr_t)value, name, values)
	{
		struct place series = {.up = here, .name = name};
		struct tm_doc_series *row = tm_fields_append(r->doc, at, &tm_type_series);

		row->name = tm_document_text(r->doc, name);
		if (read_list(r, &reals, &row->values, values, &series) != 0)
			return -1;
	}
	return 0;
}

static int read_text(const struct reader *r, void *at, const json_t *value,
		     const struct place *here)
{
	const char *text = NULL;

	if (json_is_string(value))
		text = tm_document_text(r->doc, json_string_value(value));
	else if (!json_is_null(value))
		return refuse(r, here, "text");
	memcpy(at, &text, sizeof(text));
	return 0;
}

static int read_value(const struct reader *r, const struct tm_field *f, void *object,
		      const json_t *value, const struct place *here)
{
	char *at = (char *)object + f->offset;

	switch (f->kind) {
	case TM_FIELD_COUNT:
	case TM_FIELD_STAMP:
		return read_count(value, 10, (uint64_t *)(void *)at) ? 0
								     : refuse(r, here, "number");
	case TM_FIELD_ADDRESS:
		return read_count(value, 16, (uint64_t *)(void *)at) ? 0
								     : refuse(r, here, "address");
	case TM_FIELD_DELTA:
		return read_delta(value, (int64_t *)(void *)at) ? 0 : refuse(r, here, "number");
	case TM_FIELD_REAL:
		return read_real(value, (double *)(void *)at) ? 0 : refuse(r, here, "number");
	case TM_FIELD_INDEX:
		return read_index(value, (uint32_t *)(void *)at) ? 0 : refuse(r, here, "index");
	case TM_FIELD_WORD:
		return read_word(value, f->words, (unsigned *)(void *)at)
			       ? 0
			       : refuse(r, here, "word of the schema");
	case TM_FIELD_FLAG:
		if (!json_is_boolean(value))
			return refuse(r, here, "boolean");
		*(bool *)at = json_is_true(value);
		return 0;
	case TM_FIELD_TEXT: return read_text(r, at, value, here);
	case TM_FIELD_NUMBERS:
	case TM_FIELD_REALS:
	case TM_FIELD_TEXTS: return read_list(r, f, at, value, here);
	case TM_FIELD_OBJECT: return read_object(r, f->type, at, value, here);
	case TM_FIELD_ROWS: return read_rows(r, f, at, value, here);
	case TM_FIELD_SERIES: return read_series(r, at, value, here);
	}
	return -1;
}

static int read_object(const struct reader *r, const struct tm_type *type, void *object,
		       const json_t *value, const struct place *here)
{
	if (!json_is_object(value))
		return refuse(r, here, "object");
	for (size_t i = 0; i < type->count; i++) {
		struct place field = {.up = here, .name = type->fields[i].name};
		const json_t *v = json_object_get(value, field.name);

		if (v && read_value(r, &type->fields[i], object, v, &field) != 0)
			return -1;
	}
	return 0;
}

static int read_document(const struct reader *r, const json_t *root)
{
	const json_t *schema = json_object_get(root, "schema");
	struct place top = {.name = ""};
	const char *wrong;

	if (!json_is_string(schema) || strcmp(json_string_value(schema), TM_DOC_SCHEMA) != 0) {
		tm_say("'%s' is no report: schema is not \"" TM_DOC_SCHEMA "\"", r->path);
		return -1;
	}
	if (read_object(r, &tm_type_document, r->doc, root, &top) != 0)
		return -1;
	wrong = tm_document_check(r->doc);
	if (wrong) {
		tm_say("'%s' is no report: %s", r->path, wrong);
		return -1;
	}
	return 0;
}

int tm_document_read_json(struct tm_document *doc, const char *path)
{
	struct reader reader = {.doc = doc, .path = path};
	json_error_t error;
	json_t *root;
	int rc;

	FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
	if (file == NULL) {
		tm_say("cannot read '%s': %s", path, strerror(errno));
		return -1;
	}
	root = json_loadf(file, JSON_REJECT_DUPLICATES, &error);
	if (file != stdin)
		fclose(file);
	if (root == NULL) {
		tm_say("'%s' is no report: line %d: %s", path, error.line, error.text);
		return -1;
	}
	rc = read_document(&reader, root);
	json_decref(root);
	return rc;
}
