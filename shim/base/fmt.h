/* SPDX-License-Identifier: MIT */
/*
 * fmt: bounded text formatting without libc, locale or allocation. Pure; any thread, any signal
 * handler, before any constructor.
 *
 * tm_fmt understands %d %i %u %x %X %c %s %p %% with the lengths h hh l ll z t j, the flags '-' and
 * '0', a width and a precision (numbers or '*'); a precision bounds a string and is the least
 * number of digits of an integer. There is no floating point: see tm_fmt_fixed. An unknown
 * conversion is copied as it stands.
 */
#ifndef TM_BASE_FMT_H
#define TM_BASE_FMT_H

#include <stdarg.h>

#include "shim/base/attrs.h"

/* A buffer for appending text; always zero-terminated if size > 0. */
struct tm_fmt_out {
	char *buf;
	size_t size;
	size_t len; /* of the untruncated text; > size - 1: it was truncated */
};

/*
 * Writes at most size - 1 characters and a zero byte. Returns the length of the untruncated text,
 * as snprintf does: a result >= size means that it was truncated.
 */
size_t tm_fmt(char *buf, size_t size, const char *format, ...) TM_PRINTF(3, 4);
size_t tm_fmt_v(char *buf, size_t size, const char *format, va_list args) TM_PRINTF(3, 0);

/* The same, appended to an output. */
void tm_fmt_add(struct tm_fmt_out *out, const char *format, ...) TM_PRINTF(2, 3);
void tm_fmt_add_v(struct tm_fmt_out *out, const char *format, va_list args) TM_PRINTF(2, 0);

/* Of each string no more than "most" bytes and "..." for the rest. */
void tm_fmt_add_cut(struct tm_fmt_out *out, size_t most, const char *format, va_list args)
	TM_PRINTF(3, 0);

void tm_fmt_add_char(struct tm_fmt_out *out, char c);
void tm_fmt_add_bytes(struct tm_fmt_out *out, const char *text, size_t len);

/* Number of characters actually in the buffer. */
size_t tm_fmt_stored(const struct tm_fmt_out *out);

/*
 * Names come from outside: replaces line breaks and other control characters by '?' in what was
 * stored from byte `from` on.
 */
void tm_fmt_defuse(struct tm_fmt_out *out, size_t from);

/*
 * Appends bytes of a file or of the environment as printable ASCII: others as "\xNN". At most `most`
 * characters, then "...".
 */
void tm_fmt_add_escaped(struct tm_fmt_out *out, const char *text, size_t len, size_t most);

/*
 * "value / 10^digits" with that many digits behind the point: tm_fmt_fixed(b, n, 1234, 2) is 12.34
 */
size_t tm_fmt_fixed(char *buf, size_t size, uint64_t value, unsigned int digits);

/* Human-readable, three significant digits: "0", "17 B", "1.5 KiB", "209 MiB", "1.0 TiB". */
size_t tm_fmt_bytes(char *buf, size_t size, uint64_t bytes);

/* Bytes, exact, in the notation of the environment variables: "1536K", "4096", "2G". */
size_t tm_fmt_size(char *buf, size_t size, uint64_t bytes);

/* Milliseconds, exact, in the notation of the environment variables: "500ms", "10s", "2h". */
size_t tm_fmt_time(char *buf, size_t size, uint64_t ms);

#endif
