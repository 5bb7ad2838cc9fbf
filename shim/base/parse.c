/* SPDX-License-Identifier: MIT */
/* parse: see parse.h. Owns nothing. */
#include "shim/base/parse.h"

#include <errno.h>

TM_AT_START_CODE struct tm_str tm_str_of(const char *text)
{
	struct tm_str s = {text, 0};

	if (text) {
		while (text[s.len])
			s.len++;
	}
	return s;
}

TM_AT_START_CODE bool tm_str_equal(struct tm_str a, struct tm_str b)
{
	if (a.len != b.len)
		return false;
	for (size_t i = 0; i < a.len; i++) {
		if (a.at[i] != b.at[i])
			return false;
	}
	return true;
}

TM_AT_START_CODE bool tm_str_is(struct tm_str s, const char *text)
{
	return tm_str_equal(s, tm_str_of(text));
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool tm_str_is_nocase(struct tm_str s, const char *text)
{
	size_t i;

	for (i = 0; i < s.len && text[i]; i++) {
		if (lower(s.at[i]) != lower(text[i]))
			return false;
	}
	return i == s.len && text[i] == '\0';
}

TM_AT_START_CODE bool tm_str_starts(struct tm_str s, const char *prefix)
{
	size_t i;

	for (i = 0; prefix[i]; i++) {
		if (i == s.len || s.at[i] != prefix[i])
			return false;
	}
	return true;
}

bool tm_str_ends(struct tm_str s, const char *suffix)
{
	struct tm_str end = tm_str_of(suffix);

	return s.len >= end.len && __builtin_memcmp(s.at + s.len - end.len, suffix, end.len) == 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

TM_AT_START_CODE struct tm_str tm_str_trim(struct tm_str s)
{
	while (s.len && is_blank(s.at[0])) {
		s.at++;
		s.len--;
	}
	while (s.len && is_blank(s.at[s.len - 1]))
		s.len--;
	return s;
}

/* Value of a digit, or 16 for what is none. */
static unsigned int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned int)(c - '0');
	c = lower(c);
	if (c >= 'a' && c <= 'f')
		return (unsigned int)(c - 'a') + 10;
	return 16;
}

TM_AT_START_CODE int tm_parse_u64(struct tm_str s, uint64_t *ret_value)
{
	unsigned int base = 10;
	uint64_t value = 0;

	if (s.len > 2 && s.at[0] == '0' && lower(s.at[1]) == 'x') {
		base = 16;
		s.at += 2;
		s.len -= 2;
	}
	if (s.len == 0)
		return -EINVAL;
	for (size_t i = 0; i < s.len; i++) {
		if (digit_of(s.at[i]) >= base)
			return -EINVAL;
	}
	for (size_t i = 0; i < s.len; i++) {
		if (__builtin_mul_overflow(value, (uint64_t)base, &value) ||
		    __builtin_add_overflow(value, (uint64_t)digit_of(s.at[i]), &value))
			return -ERANGE;
	}
	*ret_value = value;
	return 0;
}

int tm_parse_u64_in(struct tm_str s, uint64_t low, uint64_t high, uint64_t *ret_value)
{
	uint64_t value;
	int err = tm_parse_u64(s, &value);

	if (err)
		return err;
	if (value < low || value > high)
		return -ERANGE;
	*ret_value = value;
	return 0;
}

struct decimal {
	uint64_t whole;
	uint64_t fraction; /* in units of 10^-9 */
	bool has_point;
};

/* Digits with an optional point; what follows stays in "*rest". */
static TM_AT_START_CODE int take_decimal(struct tm_str *rest, struct decimal *ret)
{
	struct tm_str number = {rest->at, 0};
	uint64_t scale = 1000000000;
	size_t digits = 0;
	int err;

	*ret = (struct decimal){0, 0, false};
	while (number.len < rest->len && digit_of(number.at[number.len]) < 10)
		number.len++;
	if (number.len) {
		err = tm_parse_u64(number, &ret->whole);
		if (err)
			return err;
	}
	rest->at += number.len;
	rest->len -= number.len;
	digits = number.len;
	if (rest->len && rest->at[0] == '.') {
		ret->has_point = true;
		rest->at++;
		rest->len--;
		while (rest->len && digit_of(rest->at[0]) < 10) {
			scale /= 10;
			ret->fraction += digit_of(rest->at[0]) * scale;
			rest->at++;
			rest->len--;
			digits++;
		}
	}
	return digits ? 0 : -EINVAL;
}

static int scaled(struct decimal d, uint64_t unit, uint64_t *ret)
{
	tm_u128 value = (tm_u128)d.whole * unit;

	if (d.fraction != 0)
		value += (tm_u128)d.fraction * unit / 1000000000u;
	if (value > UINT64_MAX)
		return -ERANGE;
	*ret = (uint64_t)value;
	return 0;
}

TM_AT_START_CODE int tm_parse_size(struct tm_str s, uint64_t *ret_bytes)
{
	static const char units[] = "kmgt";
	struct decimal number;
	uint64_t unit = 1;
	int err = take_decimal(&s, &number);

	if (err)
		return err;
	if (s.len) {
		for (unsigned int i = 0; i < 4; i++) {
			if (lower(s.at[0]) == units[i])
				unit = (uint64_t)1 << (10 * (i + 1));
		}
		if (unit > 1) {
			s.at++;
			s.len--;
		}
	}
	if (s.len && !tm_str_is_nocase(s, "b") && !(unit > 1 && tm_str_is_nocase(s, "ib")))
		return -EINVAL;
	if (unit == 1 && number.has_point)
		return -EINVAL;
	return scaled(number, unit, ret_bytes);
}

int tm_parse_time(struct tm_str s, uint64_t *ret_ms)
{
	static const struct {
		const char *name;
		uint64_t ms;
	} units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
	struct decimal number;
	int err = take_decimal(&s, &number);

	if (err)
		return err;
	for (size_t i = 0; i < TM_ARRAY_LEN(units); i++) {
		if (tm_str_is(s, units[i].name))
			return scaled(number, units[i].ms, ret_ms);
	}
	if (s.len || number.whole || number.fraction || number.has_point)
		return -EINVAL;
	*ret_ms = 0;
	return 0;
}

TM_AT_START_CODE bool tm_parse_next(struct tm_str *rest, char separator, struct tm_str *ret_item)
{
	struct tm_str item = {rest->at, 0};

	if (rest->at == NULL || rest->len == 0)
		return false;
	while (item.len < rest->len && item.at[item.len] != separator)
		item.len++;
	if (item.len == rest->len) {
		rest->at += item.len;
		rest->len = 0;
	} else {
		rest->at += item.len + 1;
		rest->len -= item.len + 1;
	}
	*ret_item = item;
	return true;
}

/* Matches one character against the set that starts behind '['; false with *ret_next NULL: no set. */
static bool set_matches(struct tm_str pattern, size_t i, char c, size_t *ret_next)
{
	bool negated = i < pattern.len && (pattern.at[i] == '!' || pattern.at[i] == '^');
	bool found = false;
	size_t first;

	i += negated;
	for (first = i; i < pattern.len && (pattern.at[i] != ']' || i == first); i++) {
		char low = pattern.at[i];
		char high = low;

		if (i + 2 < pattern.len && pattern.at[i + 1] == '-' && pattern.at[i + 2] != ']') {
			high = pattern.at[i + 2];
			i += 2;
		}
		found |= (unsigned char)low <= (unsigned char)c &&
			 (unsigned char)c <= (unsigned char)high;
	}
	*ret_next = i < pattern.len ? i + 1 : 0;
	return found != negated;
}

/* One pattern element at "*p" against c; moves "*p" behind it when it matches. */
static bool element_matches(struct tm_str pattern, size_t *p, char c)
{
	size_t next;

	if (pattern.at[*p] == '?') {
		*p += 1;
		return true;
	}
	if (pattern.at[*p] == '[') {
		bool found = set_matches(pattern, *p + 1, c, &next);

		if (next) {
			*p = found ? next : *p;
			return found;
		}
	}
	next = *p;
	if (pattern.at[next] == '\\' && next + 1 < pattern.len)
		next++;
	if (pattern.at[next] != c)
		return false;
	*p = next + 1;
	return true;
}

bool tm_parse_glob(struct tm_str pattern, struct tm_str text)
{
	size_t p = 0;
	size_t t = 0;
	size_t star_p = SIZE_MAX;
	size_t star_t = 0;

	/* On a mismatch only the latest star can take one more character: no recursion, O(n*m). */
	while (t < text.len) {
		if (p < pattern.len && pattern.at[p] == '*') {
			star_p = ++p;
			star_t = t;
		} else if (p < pattern.len && element_matches(pattern, &p, text.at[t])) {
			t++;
		} else if (star_p != SIZE_MAX) {
			p = star_p;
			t = ++star_t;
		} else {
			return false;
		}
	}
	while (p < pattern.len && pattern.at[p] == '*')
		p++;
	return p == pattern.len;
}

bool tm_parse_glob_list(struct tm_str patterns, struct tm_str text)
{
	struct tm_str item;

	while (tm_parse_next(&patterns, ',', &item)) {
		if (tm_parse_glob(tm_str_trim(item), text))
			return true;
	}
	return false;
}
