/* SPDX-License-Identifier: MIT */
/*
 * tunables_parse: parses and prints a value of each kind, to and from struct tm_options. Private to
 * tunables.c and its tests.
 */
#ifndef TM_BASE_TUNABLES_PARSE_H
#define TM_BASE_TUNABLES_PARSE_H

#include "shim/base/fmt.h"
#include "shim/base/tunables.h"

enum tm_tunable_kind {
	TM_KIND_WORD,
	TM_KIND_SIZE,
	TM_KIND_TIME,
	TM_KIND_NUMBER,
	TM_KIND_TEXT,
	TM_KIND_POOLS,
	TM_KIND_NUMA,
	TM_KIND_GUARD,
	TM_KIND_FILL,
	TM_KIND_ALIGN,
	TM_KIND_DEEPBIND,
	TM_KIND_LOG,
};

/* The caller's memory for texts. */
struct tm_tunables_store {
	char *at;
	size_t left;
};

/* A zero-terminated copy in the store; NULL: no room. */
const char *tm_tunables_parse_keep(struct tm_tunables_store *store, struct tm_str text);

/* Name of the component that this value needs beyond the row's own; empty: none. */
struct tm_str tm_tunables_parse_part(const struct tm_tunable_row *row, struct tm_str value);

/*
 * Parses a value into the options. 0; -EINVAL: invalid; -ENOMEM: no room; then they are untouched.
 */
int tm_tunables_parse_value(struct tm_options *options, const struct tm_tunable_row *row,
			    struct tm_str value, struct tm_tunables_store *store);

/* Prints the value in the notation of the environment variable. */
void tm_tunables_parse_print(struct tm_fmt_out *out, const struct tm_options *options,
			     const struct tm_tunable_row *row);

#endif
