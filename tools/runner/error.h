/* SPDX-License-Identifier: MIT */
/*
 * A one-line message that says why something was refused.
 *
 * Functions that may refuse their input take a `struct yi_error *` as their last parameter and fill
 * it in when they return a negative errno; on success they leave it alone. Only main.c and the
 * session server print.
 */
#ifndef YI_ERROR_H
#define YI_ERROR_H

struct yi_error {
	int status; /* suitable exit status: 1 trouble, 2 usage, 3 model file refused */
	char text[480];
};

#define YI_EXIT_TROUBLE 1
#define YI_EXIT_USAGE 2
#define YI_EXIT_REFUSED 3

/* Formats the line (only the first call on an error counts); returns the negative `code`. */
int yi_error_set(struct yi_error *error, int status, int code, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#endif
