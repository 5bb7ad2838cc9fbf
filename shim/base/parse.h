/* SPDX-License-Identifier: MIT */
/*
 * parse: parses numbers, sizes, times, globs and lists with checked arithmetic, without libc,
 * locale or allocation. Pure; any thread, any signal handler, before any constructor.
 *
 * Text is passed as a slice, because a value may be part of TIERMALLOC_CONF or of a rules line. A
 * parser consumes the whole slice or fails with -EINVAL; -ERANGE: a well-formed number that does
 * not fit. Results are untouched on failure.
 */
#ifndef TM_BASE_PARSE_H
#define TM_BASE_PARSE_H

#include "shim/base/attrs.h"

struct tm_str {
	const char *at;
	size_t len;
};

/* A slice of a whole string; NULL gives an empty one. */
struct tm_str tm_str_of(const char *text);
bool tm_str_is(struct tm_str s, const char *text);
bool tm_str_equal(struct tm_str a, struct tm_str b);
/* Ignores case, of ASCII letters only: no locale is set up yet. */
bool tm_str_is_nocase(struct tm_str s, const char *text);
bool tm_str_starts(struct tm_str s, const char *prefix);
bool tm_str_ends(struct tm_str s, const char *suffix);
/* The slice without leading and trailing blanks and tabs. */
struct tm_str tm_str_trim(struct tm_str s);

/* Decimal, or hexadecimal after 0x. No sign, no blanks. */
int tm_parse_u64(struct tm_str s, uint64_t *ret_value);

/* The same within [low, high], else -ERANGE. */
int tm_parse_u64_in(struct tm_str s, uint64_t low, uint64_t high, uint64_t *ret_value);

/* Bytes: "4096", "64K", "1.5G", "2MiB"; K M G T are powers of 1024, in either case. */
int tm_parse_size(struct tm_str s, uint64_t *ret_bytes);

/* Milliseconds: "500ms", ".5s", "2m", "1h". A number without a unit is an error, except 0. */
int tm_parse_time(struct tm_str s, uint64_t *ret_ms);

/*
 * Takes the next item off "*rest", up to "separator"; false: nothing is left. "a,,b" has an empty
 * item in the middle; an empty "*rest" has no item.
 */
bool tm_parse_next(struct tm_str *rest, char separator, struct tm_str *ret_item);

/* Matches a shell pattern: * ? [abc] [a-z] [!a]; \ quotes the next character. */
bool tm_parse_glob(struct tm_str pattern, struct tm_str text);

/* Whether any pattern in a comma-separated list matches. */
bool tm_parse_glob_list(struct tm_str patterns, struct tm_str text);

#endif
