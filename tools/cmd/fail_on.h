/* SPDX-License-Identifier: MIT */
/*
 * fail_on: conditions of --fail-on: KEY>VALUE[UNIT][/s|/min|/h], separated by commas; one that
 * holds is enough. KEY: growth (a rate, per hour by default), unreachable, live, rss, residual,
 * external (bytes, or with % relative to their whole), blowup (a ratio).
 */
#ifndef TM_TOOLS_FAIL_ON_H
#define TM_TOOLS_FAIL_ON_H

#include "tools/document/document.h"

#define TM_FAIL_ON_MAX 16u

enum tm_fail_key {
	TM_FAIL_GROWTH,
	TM_FAIL_UNREACHABLE,
	TM_FAIL_LIVE,
	TM_FAIL_RSS,
	TM_FAIL_RESIDUAL,
	TM_FAIL_EXTERNAL,
	TM_FAIL_BLOWUP,
	TM_FAIL_KEYS,
};

struct tm_fail_on {
	struct tm_fail_condition {
		enum tm_fail_key key;
		double value; /* bytes, bytes per hour, a ratio, or percent */
		bool is_percent;
		const char *text;
		int length;
	} condition[TM_FAIL_ON_MAX];
	size_t count;
};

/* Returns 0, or TM_EXIT_USAGE after one line on standard error. "text" must outlive f. */
int tm_fail_on_parse(struct tm_fail_on *f, const char *text);

/* The first condition that holds, or NULL. *ret_value is the value found. */
const struct tm_fail_condition *tm_fail_on_holds(const struct tm_fail_on *f,
						 const struct tm_document *doc, double *ret_value);

/* Formats a value in the unit of the condition: "2.3 GiB an hour", "12.0 %", "1.3". Returns buf. */
const char *tm_fail_on_name_value(const struct tm_fail_condition *c, double value, char buf[32]);

#endif
