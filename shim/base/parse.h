/* SPDX-License-Identifier: MIT */
/*
 * parse: numbers, sizes, times, globs and lists out of text, with checked arithmetic, without libc,
 * locale or allocation. Pure; any thread, any signal handler, before any constructor.
 *
 * Text is a slice, because a value may lie in the middle of TIERMALLOC_CONF or of a rules line.
 * Every parser takes the whole slice or fails with -EINVAL; -ERANGE means that the number was well
 * formed and does not fit. A result is untouched on failure.
 */
#ifndef TM_BASE_PARSE_H
#define TM_BASE_PARSE_H

#include "shim/base/attrs.h"

struct tm_str {
	const char *at;
	size_t len;
};

/* NULL gives an empty slice. */
struct tm_str tm_str_of(const char *text);
bool tm_str_is(struct tm_str s, const char *text);
bool tm_str_equal(struct tm_str a, struct tm_str b);
/* ASCII only: the environment is not in the user's locale yet. */
bool tm_str_is_nocase(struct tm_str s, const char *text);
bool tm_str_starts(struct tm_str s, const char *prefix);
bool tm_str_ends(struct tm_str s, const char *suffix);
/* Without blanks and tabs at both ends. */
struct tm_str tm_str_trim(struct tm_str s);

/* Decimal, or hexadecimal after 0x. No sign, no blanks. */
int tm_parse_u64(struct tm_str s, uint64_t *ret_value);

/* The same within [low, high], else -ERANGE. */
int tm_parse_u64_in(struct tm_str s, uint64_t low, uint64_t high, uint64_t *ret_value);

/* Bytes: "4096", "64K", "1.5G", "2MiB"; K M G T are powers of 1024, in either case. */
int tm_parse_size(struct tm_str s, uint64_t *ret_bytes);

/* Milliseconds: "500ms", ".5s", "2m", "1h". A number without unit is refused, except 0. */
int tm_parse_time(struct tm_str s, uint64_t *ret_ms);

/*
 * Cuts the next item off "*rest" at "separator"; false when nothing is left. "a,,b" has an empty
 * item in the middle; an empty "*rest" has none.
 */
bool tm_parse_next(struct tm_str *rest, char separator, struct tm_str *ret_item);

/* Shell patterns: * ? [abc] [a-z] [!a] and \ before a character to be taken as it stands. */
bool tm_parse_glob(struct tm_str pattern, struct tm_str text);

/* Whether any pattern of a comma-separated list matches. */
bool tm_parse_glob_list(struct tm_str patterns, struct tm_str text);

#endif
