/* SPDX-License-Identifier: MIT */
/* See error.h. */
#include "tools/runner/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tools/runner/unicode.h"

/* Names and values come from hostile files: the message must stay one line of UTF-8. */
static void defuse(char *text)
{
	size_t left = strlen(text);

	while (left > 0) {
		int good = yi_unicode_check(text, left);

		if (good <= 0 || (unsigned char)*text < 0x20 || *text == 0x7f) {
			*text = '?';
			good = 1;
		}
		text += good;
		left -= (size_t)good;
	}
}

int yi_error_set(struct yi_error *error, int status, int code, const char *format, ...)
{
	va_list args;

	if (error->status == 0) {
		error->status = status;
		va_start(args, format);
		vsnprintf(error->text, sizeof(error->text), format, args);
		va_end(args);
		defuse(error->text);
	}
	return code;
}
