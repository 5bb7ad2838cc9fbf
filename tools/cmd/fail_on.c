/* SPDX-License-Identifier: MIT */
#include "tools/cmd/fail_on.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/fmt.h"
#include "shim/base/parse.h"
#include "tools/cmd.h"

static const char *const names[TM_FAIL_KEYS] = {
	"growth", "unreachable", "live", "rss", "residual", "external", "blowup",
};

/* Parses "5", "1.5MiB", "2G", "30%"; digits alone are bytes. */
static int parse_value(struct tm_str text, struct tm_fail_condition *c)
{
	uint64_t bytes;

	if (text.len > 1 && text.at[text.len - 1] == '%') {
		c->is_percent = true;
		text.len--;
	}
	if (!c->is_percent && c->key != TM_FAIL_BLOWUP) {
		if (tm_parse_size(text, &bytes) != 0)
			return -1;
		c->value = (double)bytes;
		return 0;
	}
	char digits[32], *end;
	if (text.len == 0 || text.len >= sizeof(digits) ||
	    strspn(text.at, "0123456789.") < text.len)
		return -1;
	memcpy(digits, text.at, text.len);
	digits[text.len] = '\0';
	c->value = strtod(digits, &end);
	return *end == '\0' ? 0 : -1;
}

/* Removes "/s" and the like from a rate; returns the factor to a rate per hour. */
static double take_time(struct tm_str *value)
{
	static const struct {
		const char *suffix;
		double factor;
	} unit[] = {{"/s", 3600}, {"/min", 60}, {"/h", 1}};

	for (size_t i = 0; i < TM_ARRAY_LEN(unit); i++) {
		size_t len = strlen(unit[i].suffix);

		if (value->len > len &&
		    memcmp(value->at + value->len - len, unit[i].suffix, len) == 0) {
			value->len -= len;
			return unit[i].factor;
		}
	}
	return 0;
}

static int parse_one(struct tm_fail_condition *c, struct tm_str item)
{
	const char *sign = memchr(item.at, '>', item.len);
	struct tm_str key = {item.at, sign ? (size_t)(sign - item.at) : item.len};

	*c = (struct tm_fail_condition){
		.key = TM_FAIL_KEYS, .text = item.at, .length = (int)item.len};
	for (unsigned k = 0; k < TM_FAIL_KEYS; k++) {
		if (tm_str_is(tm_str_trim(key), names[k]))
			c->key = k;
	}
	if (c->key == TM_FAIL_KEYS)
		return tm_say_usage(
			"unknown key in '%.*s' of --fail-on, use growth, unreachable, live, rss, residual, external, blowup",
			(int)item.len, item.at);
	struct tm_str value = {item.at + item.len, 0};
	if (sign)
		value = tm_str_trim((struct tm_str){sign + 1, item.len - key.len - 1});
	double factor = take_time(&value);
	if (sign == NULL || (factor != 0 && c->key != TM_FAIL_GROWTH) ||
	    parse_value(value, c) != 0 || (c->is_percent && c->key == TM_FAIL_GROWTH))
		return tm_say_usage("bad condition '%.*s' of --fail-on, use KEY>VALUE[UNIT][/h]",
				    (int)item.len, item.at);
	if (factor != 0)
		c->value *= factor;
	return TM_EXIT_CLEAN;
}

int tm_fail_on_parse(struct tm_fail_on *f, const char *text)
{
	struct tm_str rest = tm_str_of(text), item;

	while (tm_parse_next(&rest, ',', &item)) {
		if (f->count == TM_FAIL_ON_MAX)
			return tm_say_usage("more than %u conditions of --fail-on", TM_FAIL_ON_MAX);
		int status = parse_one(&f->condition[f->count], tm_str_trim(item));
		if (status)
			return status;
		f->count++;
	}
	if (f->count == 0)
		return tm_say_usage("--fail-on needs a condition, such as growth>1MiB/h");
	return TM_EXIT_CLEAN;
}

static double part_of(double part, double whole, bool is_percent)
{
	return is_percent ? (whole > 0 ? 100 * part / whole : 0) : part;
}

static double delta(int64_t value)
{
	return value == TM_DOC_UNKNOWN_DELTA ? 0 : (double)value;
}

/* Value of a key; NAN: unknown, and then no condition holds. */
static double value_of(const struct tm_document *doc, enum tm_fail_key key, bool is_percent)
{
	const struct tm_doc_balance *b = &doc->balance;
	double rss = b->rss_bytes == TM_DOC_UNKNOWN ? NAN : (double)b->rss_bytes;
	double live = delta(b->live_req), lost = 0;

	switch (key) {
	case TM_FAIL_GROWTH: return doc->verdict.growth_bytes_per_h;
	case TM_FAIL_UNREACHABLE:
		for (size_t i = 0; i < doc->leaks.count; i++) {
			if (doc->leaks.at[i].class == TM_DOC_UNREACHABLE)
				lost += (double)(doc->leaks.at[i].direct +
						 doc->leaks.at[i].indirect);
		}
		return part_of(lost, live, is_percent);
	case TM_FAIL_LIVE: return part_of(live, rss, is_percent);
	case TM_FAIL_RSS: return part_of(rss, rss, is_percent);
	case TM_FAIL_RESIDUAL:
		return isnan(rss) ? NAN : part_of(fabs(delta(b->residual)), rss, is_percent);
	case TM_FAIL_EXTERNAL:
		return part_of(delta(b->external), live + delta(b->internal) + delta(b->external),
			       is_percent);
	case TM_FAIL_BLOWUP:
		return live > 0 ? (live + delta(b->internal) + delta(b->external) +
				   delta(b->cached)) /
					  live
				: NAN;
	case TM_FAIL_KEYS: break;
	}
	return NAN;
}

const struct tm_fail_condition *tm_fail_on_holds(const struct tm_fail_on *f,
						 const struct tm_document *doc, double *ret_value)
{
	for (size_t i = 0; i < f->count; i++) {
		const struct tm_fail_condition *c = &f->condition[i];
		double value = value_of(doc, c->key, c->is_percent);

		if (value > c->value) {
			*ret_value = value;
			return c;
		}
	}
	return NULL;
}

const char *tm_fail_on_name_value(const struct tm_fail_condition *c, double value, char buf[32])
{
	char bytes[24];

	if (c->is_percent) {
		snprintf(buf, 32, "%.1f %%", value);
		return buf;
	}
	if (c->key == TM_FAIL_BLOWUP) {
		snprintf(buf, 32, "%.2f", value);
		return buf;
	}
	tm_fmt_bytes(bytes, sizeof(bytes), value < 1e18 ? (uint64_t)value : UINT64_C(1) << 60);
	snprintf(buf, 32, "%s%s", bytes, c->key == TM_FAIL_GROWTH ? "/h" : "");
	return buf;
}
