/* SPDX-License-Identifier: MIT */
#include "tools/runner/json.h"

#include <stdlib.h>
#include <string.h>

#include "tools/runner/unicode.h"

/* What may come next. */
enum state {
	WANT_VALUE,
	WANT_VALUE_OR_END, /* just inside [ */
	WANT_KEY,
	WANT_KEY_OR_END, /* just inside { */
	WANT_COMMA_OR_END,
	WANT_NOTHING
};

void yi_json_start(struct yi_json *json, char *text, size_t len)
{
	memset(json, 0, sizeof(*json));
	json->at = text;
	json->end = text + len;
	json->state = WANT_VALUE;
}

static enum yi_json_kind bad(struct yi_json *json, const char *problem)
{
	if (!json->problem)
		json->problem = problem;
	return YI_JSON_BAD;
}

static char peek(const struct yi_json *json)
{
	return json->at < json->end ? *json->at : 0;
}

static void skip_blanks(struct yi_json *json)
{
	while (json->at < json->end && strchr(" \t\r\n", *json->at) && *json->at)
		json->at++;
}

/* State after a value has ended. */
static enum state after_value(const struct yi_json *json)
{
	return json->depth ? WANT_COMMA_OR_END : WANT_NOTHING;
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The value of the four digits after \u; -1: there are not four. */
static int32_t read_unit(struct yi_json *json)
{
	int32_t unit = 0;

	if (json->end - json->at < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		int digit = hex_value(*json->at++);

		if (digit < 0)
			return -1;
		unit = unit * 16 + digit;
	}
	return unit;
}

/* Decodes a \u escape, and its second half if it is a surrogate pair. */
static const char *read_code(struct yi_json *json, char **out)
{
	int32_t unit = read_unit(json), low;
	uint32_t code = (uint32_t)unit;

	if (unit < 0)
		return "\\u without four hexadecimal digits";
	if (unit >= 0xdc00 && unit <= 0xdfff)
		return "lone low surrogate";
	if (unit >= 0xd800 && unit <= 0xdbff) {
		if (json->end - json->at < 6 || json->at[0] != '\\' || json->at[1] != 'u')
			return "lone high surrogate";
		json->at += 2;
		low = read_unit(json);
		if (low < 0xdc00 || low > 0xdfff)
			return "lone high surrogate";
		code = 0x10000u + ((code - 0xd800u) << 10) + ((uint32_t)low - 0xdc00u);
	}
	*out += yi_unicode_encode(code, *out);
	return NULL;
}

static const char *read_escape(struct yi_json *json, char **out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	char c = peek(json);
	const char *found = c ? strchr(from, c) : NULL;

	json->at++;
	if (c == 'u')
		return read_code(json, out);
	if (!found)
		return "unknown escape";
	*(*out)++ = to[found - from];
	return NULL;
}

/* Decodes a string in place: an escape is never shorter than its text. */
static const char *read_string(struct yi_json *json, struct yi_json_item *item)
{
	char *out = ++json->at;
	const char *problem = NULL;

	item->text = out;
	while (json->at < json->end && *json->at != '"' && !problem) {
		uint8_t byte = (uint8_t)*json->at;
		int length;

		if (byte < 0x20)
			return "control character in a string";
		if (byte == '\\') {
			json->at++;
			problem = json->at < json->end ? read_escape(json, &out) : "unended string";
			continue;
		}
		length = yi_unicode_check(json->at, (size_t)(json->end - json->at));
		if (length <= 0)
			return "not UTF-8";
		memmove(out, json->at, (size_t)length);
		out += length;
		json->at += length;
	}
	if (problem)
		return problem;
	if (json->at >= json->end)
		return "unended string";
	json->at++;
	item->len = (size_t)(out - item->text);
	return NULL;
}

static size_t digits(struct yi_json *json)
{
	char *start = json->at;

	while (peek(json) >= '0' && peek(json) <= '9')
		json->at++;
	return (size_t)(json->at - start);
}

static const char *read_number(struct yi_json *json, struct yi_json_item *item)
{
	char copy[64];
	const char *start = json->at;
	size_t len;

	if (peek(json) == '-')
		json->at++;
	if (peek(json) == '0')
		json->at++;
	else if (digits(json) == 0)
		return "no digit in a number";
	if (peek(json) == '.') {
		json->at++;
		if (digits(json) == 0)
			return "no digit behind the point";
	}
	if (peek(json) == 'e' || peek(json) == 'E') {
		json->at++;
		if (peek(json) == '+' || peek(json) == '-')
			json->at++;
		if (digits(json) == 0)
			return "no digit in the exponent";
	}
	len = (size_t)(json->at - start);
	if (len >= sizeof(copy))
		return "number of more than 63 characters";
	memcpy(copy, start, len);
	copy[len] = 0;
	item->number = strtod(copy, NULL);
	return NULL;
}

static const char *read_word(struct yi_json *json, struct yi_json_item *item)
{
	static const struct {
		const char *word;
		enum yi_json_kind kind;
	} words[] = {{"true", YI_JSON_TRUE}, {"false", YI_JSON_FALSE}, {"null", YI_JSON_NULL}};

	for (size_t i = 0; i < 3; i++) {
		size_t len = strlen(words[i].word);

		if ((size_t)(json->end - json->at) < len || memcmp(json->at, words[i].word, len))
			continue;
		json->at += len;
		item->kind = words[i].kind;
		return NULL;
	}
	return "a value is missing";
}

static enum yi_json_kind open_up(struct yi_json *json, enum yi_json_kind kind, enum state inside)
{
	if (json->depth == YI_JSON_DEPTH)
		return bad(json, "nested too deep");
	json->open[json->depth++] = *json->at++;
	json->state = inside;
	return kind;
}

static enum yi_json_kind close_up(struct yi_json *json)
{
	char open = json->open[json->depth - 1];

	if (*json->at != (open == '{' ? '}' : ']'))
		return bad(json, "wrong closing bracket");
	json->at++;
	json->depth--;
	json->state = after_value(json);
	return open == '{' ? YI_JSON_OBJECT_END : YI_JSON_ARRAY_END;
}

static enum yi_json_kind read_key(struct yi_json *json, struct yi_json_item *item)
{
	const char *problem;

	if (peek(json) != '"')
		return bad(json, "a key is missing");
	problem = read_string(json, item);
	if (problem)
		return bad(json, problem);
	skip_blanks(json);
	if (peek(json) != ':')
		return bad(json, "a colon is missing");
	json->at++;
	json->state = WANT_VALUE;
	return YI_JSON_KEY;
}

static enum yi_json_kind read_value(struct yi_json *json, struct yi_json_item *item)
{
	const char *problem;
	char c = peek(json);

	if (c == '{')
		return open_up(json, YI_JSON_OBJECT, WANT_KEY_OR_END);
	if (c == '[')
		return open_up(json, YI_JSON_ARRAY, WANT_VALUE_OR_END);
	item->kind = c == '"' ? YI_JSON_STRING : YI_JSON_NUMBER;
	if (c == '"')
		problem = read_string(json, item);
	else if (c == '-' || (c >= '0' && c <= '9'))
		problem = read_number(json, item);
	else
		problem = read_word(json, item);
	if (problem)
		return bad(json, problem);
	json->state = after_value(json);
	return item->kind;
}

static enum yi_json_kind step(struct yi_json *json, struct yi_json_item *item)
{
	char c;

	skip_blanks(json);
	c = peek(json);
	if (json->state == WANT_NOTHING)
		return json->at == json->end ? YI_JSON_DONE : bad(json, "text behind the value");
	if (json->at == json->end)
		return bad(json, "the text ends too early");
	if ((c == '}' || c == ']') && json->depth &&
	    (json->state == WANT_COMMA_OR_END || json->state == WANT_KEY_OR_END ||
	     json->state == WANT_VALUE_OR_END))
		return close_up(json);
	if (json->state == WANT_COMMA_OR_END) {
		if (c != ',')
			return bad(json, "a comma is missing");
		json->at++;
		json->state = json->open[json->depth - 1] == '{' ? WANT_KEY : WANT_VALUE;
		return step(json, item);
	}
	if (json->state == WANT_KEY || json->state == WANT_KEY_OR_END)
		return read_key(json, item);
	return read_value(json, item);
}

enum yi_json_kind yi_json_next(struct yi_json *json, struct yi_json_item *ret_item)
{
	ret_item->text = NULL;
	ret_item->len = 0;
	ret_item->number = 0;
	ret_item->kind = json->problem ? YI_JSON_BAD : step(json, ret_item);
	return ret_item->kind;
}

void yi_json_print(FILE *out, const char *text, size_t len)
{
	fputc('"', out);
	for (size_t at = 0; at < len;) {
		int length = yi_unicode_check(text + at, len - at);
		uint8_t byte = (uint8_t)text[at];

		if (length <= 0) {
			fputs("\xef\xbf\xbd", out);
			at += length ? (size_t)-length : len - at;
		} else if (byte < 0x20 || byte == 0x7f) {
			fprintf(out, "\\u%04x", byte);
			at++;
		} else {
			if (byte == '"' || byte == '\\')
				fputc('\\', out);
			fwrite(text + at, 1, (size_t)length, out);
			at += (size_t)length;
		}
	}
	fputc('"', out);
}
