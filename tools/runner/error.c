/* SPDX-License-Identifier: MIT */
/* See error.h. */
#include "tools/runner/error.h"

#include <stdarg.h>
#include <stdio.h>

int yi_error_set(struct yi_error *error, int status, int code, const char *format, ...)
{
	va_list args;

	if (error->status == 0) {
		error->status = status;
		va_start(args, format);
		vsnprintf(error->text, sizeof(error->text), format, args);
		va_end(args);
		/* Names and values come from hostile files: the message must stay one line. */
		for (char *at = error->text; *at; at++)
			if ((unsigned char)*at < 0x20 || *at == 0x7f)
				*at = '?';
	}
	return code;
}
