/* SPDX-License-Identifier: MIT */
/* parse: numbers, sizes, times, lists, globs. */
#include <criterion/criterion.h>
#include <errno.h>

#include "shim/base/parse.h"

#define UNTOUCHED UINT64_C(0x123456789)

static void number(int (*parse)(struct tm_str, uint64_t *), const char *text, uint64_t want)
{
	uint64_t value = UNTOUCHED;

	cr_assert_eq(parse(tm_str_of(text), &value), 0, "'%s'", text);
	cr_assert_eq(value, want, "'%s' is %llu", text, (unsigned long long)value);
}

static void bad(int (*parse)(struct tm_str, uint64_t *), const char *text, int err)
{
	uint64_t value = UNTOUCHED;

	cr_assert_eq(parse(tm_str_of(text), &value), err, "'%s'", text);
	cr_assert_eq(value, UNTOUCHED, "'%s' wrote a result", text);
}

Test(parse, numbers_are_whole_slices_without_sign)
{
	number(tm_parse_u64, "0", 0);
	number(tm_parse_u64, "18446744073709551615", UINT64_MAX);
	number(tm_parse_u64, "0xff", 255);
	number(tm_parse_u64, "0XfFFFffffFFFFffff", UINT64_MAX);
	bad(tm_parse_u64, "", -EINVAL);
	bad(tm_parse_u64, "-1", -EINVAL);
	bad(tm_parse_u64, "+1", -EINVAL);
	bad(tm_parse_u64, " 1", -EINVAL);
	bad(tm_parse_u64, "1 ", -EINVAL);
	bad(tm_parse_u64, "0x", -EINVAL);
	bad(tm_parse_u64, "1a", -EINVAL);
	bad(tm_parse_u64, "18446744073709551616", -ERANGE);
	bad(tm_parse_u64, "0x10000000000000000", -ERANGE);
}

Test(parse, sizes_take_powers_of_1024)
{
	number(tm_parse_size, "0", 0);
	number(tm_parse_size, "4096", 4096);
	number(tm_parse_size, "4096B", 4096);
	number(tm_parse_size, "64K", 65536);
	number(tm_parse_size, "64k", 65536);
	number(tm_parse_size, "64KiB", 65536);
	number(tm_parse_size, "2MB", 2 << 20);
	number(tm_parse_size, "1.5G", UINT64_C(3) << 29);
	number(tm_parse_size, ".5T", UINT64_C(1) << 39);
	number(tm_parse_size, "16777215T", UINT64_C(16777215) << 40);
	bad(tm_parse_size, "16777216T", -ERANGE);
	bad(tm_parse_size, "1.5", -EINVAL);
	bad(tm_parse_size, "K", -EINVAL);
	bad(tm_parse_size, ".", -EINVAL);
	bad(tm_parse_size, "1Ki", -EINVAL);
	bad(tm_parse_size, "1iB", -EINVAL);
	bad(tm_parse_size, "1P", -EINVAL);
	bad(tm_parse_size, "1 K", -EINVAL);
	bad(tm_parse_size, "1..5K", -EINVAL);
}

Test(parse, times_need_a_unit)
{
	number(tm_parse_time, "0", 0);
	number(tm_parse_time, "500ms", 500);
	number(tm_parse_time, ".5s", 500);
	number(tm_parse_time, "2m", 120000);
	number(tm_parse_time, "1.5h", 5400000);
	bad(tm_parse_time, "5", -EINVAL);
	bad(tm_parse_time, "0.0", -EINVAL);
	bad(tm_parse_time, "5sec", -EINVAL);
	bad(tm_parse_time, "s", -EINVAL);
	bad(tm_parse_time, "99999999999999999h", -ERANGE);
}

Test(parse, next_cuts_items_and_keeps_empty_ones_between)
{
	struct tm_str rest = tm_str_of("a,,bc");
	struct tm_str item;

	cr_assert(tm_parse_next(&rest, ',', &item) && tm_str_is(item, "a"));
	cr_assert(tm_parse_next(&rest, ',', &item) && tm_str_is(item, ""));
	cr_assert(tm_parse_next(&rest, ',', &item) && tm_str_is(item, "bc"));
	cr_assert_not(tm_parse_next(&rest, ',', &item));
	rest = tm_str_of(NULL);
	cr_assert_not(tm_parse_next(&rest, ',', &item));
}

static bool glob(const char *pattern, const char *text)
{
	return tm_parse_glob(tm_str_of(pattern), tm_str_of(text));
}

Test(parse, globs_match_like_the_shell)
{
	cr_assert(glob("", ""));
	cr_assert(glob("*", ""));
	cr_assert(glob("python*", "python3"));
	cr_assert(glob("*llama*.so*", "libllama.so.1"));
	cr_assert(glob("a?c", "abc"));
	cr_assert(glob("[a-c]x", "bx"));
	cr_assert(glob("[!a-c]x", "dx"));
	cr_assert(glob("[]]x", "]x"));
	cr_assert(glob("\\*", "*"));
	cr_assert(glob("[ab", "[ab"));
	cr_assert(glob("**a**", "xay"));
	cr_assert_not(glob("", "a"));
	cr_assert_not(glob("python", "python3"));
	cr_assert_not(glob("a?c", "ac"));
	cr_assert_not(glob("[a-c]x", "dx"));
	cr_assert_not(glob("[!a-c]x", "bx"));
	cr_assert_not(glob("\\*", "x"));
	cr_assert_not(glob("*.so", "lib.so.1"));
}

Test(parse, a_glob_of_many_stars_takes_no_exponential_time)
{
	static char text[4096];

	for (size_t i = 0; i < sizeof(text) - 1; i++)
		text[i] = 'a';
	cr_assert_not(glob("a*a*a*a*a*a*a*a*a*a*a*b", text));
}

Test(parse, a_list_of_globs_matches_when_one_does)
{
	cr_assert(tm_parse_glob_list(tm_str_of("python*, llama-*"), tm_str_of("llama-cli")));
	cr_assert_not(tm_parse_glob_list(tm_str_of("python*,llama-*"), tm_str_of("bash")));
	cr_assert_not(tm_parse_glob_list(tm_str_of(""), tm_str_of("")));
}
