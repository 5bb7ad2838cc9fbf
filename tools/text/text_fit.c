/* SPDX-License-Identifier: MIT */
#include "tools/text/text_fit.h"

#include <langinfo.h>
#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <wchar.h>

#include "tools/document/utf8.h"

/* With less room a name is cut at its end: two halves would be too short to tell anything. */
#define SQUEEZE_COLUMNS 12u

static enum tm_text_set known_set = TM_TEXT_ASCII;

enum tm_text_set tm_text_fit_set(void)
{
	const char *codes;

	setlocale(LC_CTYPE, "");
	codes = nl_langinfo(CODESET);
	known_set = strcasecmp(codes, "UTF-8") == 0 || strcasecmp(codes, "utf8") == 0
			    ? TM_TEXT_UTF8
			    : TM_TEXT_ASCII;
	return known_set;
}

static uint32_t point_of(const unsigned char *c, size_t bytes)
{
	uint32_t point = bytes > 1 ? c[0] & (0xffu >> (bytes + 1)) : c[0];

	for (size_t i = 1; i < bytes; i++)
		point = point << 6 | (c[i] & 0x3f);
	return point;
}

/*
 * Whether a character controls the terminal, changes the writing direction or is a byte order mark.
 */
static bool steers(uint32_t point)
{
	return point < 0x20 || (point >= 0x7f && point < 0xa0) || point == 0x061c ||
	       (point >= 0x200e && point <= 0x200f) || (point >= 0x2028 && point <= 0x202e) ||
	       (point >= 0x2066 && point <= 0x2069) || point == 0xfeff;
}

void tm_text_fit_defuse(char *text, enum tm_text_set set)
{
	const unsigned char *from = (const unsigned char *)text;
	char *to = text;

	while (*from) {
		size_t n = tm_utf8_length(from);

		if (n == 0 || steers(point_of(from, n)) || (n > 1 && set == TM_TEXT_ASCII)) {
			*to++ = '?';
			from += n ? n : 1;
			continue;
		}
		memmove(to, from, n);
		to += n;
		from += n;
	}
	*to = '\0';
}

char *tm_text_fit_format(const char *format, va_list args)
{
	char *text;

	if (vasprintf(&text, format, args) < 0)
		return NULL;
	tm_text_fit_defuse(text, TM_TEXT_UTF8);
	return text;
}

char *tm_text_fit_copy(const char *from, size_t len)
{
	char *text = strndup(from, len);

	if (text)
		tm_text_fit_defuse(text, TM_TEXT_UTF8);
	return text;
}

/* Bytes and columns of the first character. */
static size_t look(const char *text, size_t *ret_columns)
{
	const unsigned char *c = (const unsigned char *)text;
	size_t n = tm_utf8_length(c);
	int columns = n > 1 && known_set == TM_TEXT_UTF8 ? wcwidth((wchar_t)point_of(c, n)) : 1;

	*ret_columns = columns < 0 ? 1 : (size_t)columns;
	return n ? n : 1;
}

size_t tm_text_fit_cut(const char *text, size_t columns)
{
	size_t at = 0, each;

	while (text[at]) {
		size_t n = look(text + at, &each);

		if (each > columns)
			break;
		columns -= each;
		at += n;
	}
	return at;
}

size_t tm_text_fit_columns(const char *text)
{
	size_t sum = 0, each;

	while (*text) {
		text += look(text, &each);
		sum += each;
	}
	return sum;
}

void tm_text_fit_squeeze(char *text, size_t columns)
{
	size_t all = tm_text_fit_columns(text), each;

	if (all <= columns)
		return;
	if (columns < SQUEEZE_COLUMNS) {
		size_t at = tm_text_fit_cut(text, columns ? columns - 1 : 0);

		memcpy(text + at, columns ? "~" : "", columns ? 2 : 1);
		return;
	}
	size_t tail = (columns - 1) / 2;
	size_t head = tm_text_fit_cut(text, columns - 1 - tail), at = head;

	for (size_t left = tm_text_fit_columns(text + at); left > tail; left -= each)
		at += look(text + at, &each);
	text[head] = '~'; /* "…" is not displayed everywhere */
	memmove(text + head + 1, text + at, strlen(text + at) + 1);
}
