/* SPDX-License-Identifier: MIT */
/*
 * A strict little JSON reader (RFC 8259) that works in place, and a writer of strings.
 *
 * Reading is a walk: each call of yi_json_next gives one item and checks that it may stand there.
 * Strings are decoded into the text itself, so the text must be writable and outlive them; the
 * reader allocates nothing.  Well-formed UTF-8 is demanded, nesting ends at YI_JSON_DEPTH.
 */
#ifndef YI_JSON_H
#define YI_JSON_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define YI_JSON_DEPTH 16

enum yi_json_kind {
	YI_JSON_OBJECT,
	YI_JSON_OBJECT_END,
	YI_JSON_ARRAY,
	YI_JSON_ARRAY_END,
	YI_JSON_KEY, /* text; the value follows */
	YI_JSON_STRING,
	YI_JSON_NUMBER,
	YI_JSON_TRUE,
	YI_JSON_FALSE,
	YI_JSON_NULL,
	YI_JSON_DONE, /* the text ended after one whole value */
	YI_JSON_BAD   /* problem says why; stays so */
};

struct yi_json {
	char *at, *end;
	const char *problem;      /* NULL until something is wrong */
	char open[YI_JSON_DEPTH]; /* '{' or '[' */
	unsigned depth;
	unsigned state;
};

struct yi_json_item {
	enum yi_json_kind kind;
	const char *text; /* of a key or a string; may hold NUL */
	size_t len;
	double number;
};

void yi_json_start(struct yi_json *json, char *text, size_t len);
enum yi_json_kind yi_json_next(struct yi_json *json, struct yi_json_item *ret_item);

/* Writes a quoted string; bytes that are no UTF-8 become U+FFFD. */
void yi_json_print(FILE *out, const char *text, size_t len);

#endif
