/* SPDX-License-Identifier: MIT */
/* fmt: agrees with snprintf on what it knows, and never writes past the buffer. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "shim/base/fmt.h"

#define AGREES(...)                                                                                \
	do {                                                                                       \
		char ours[128], theirs[128];                                                       \
		size_t n = tm_fmt(ours, sizeof(ours), __VA_ARGS__);                                \
		cr_assert_eq(n, (size_t)snprintf(theirs, sizeof(theirs), __VA_ARGS__));            \
		cr_assert_str_eq(ours, theirs);                                                    \
	} while (0)

Test(fmt, agrees_with_snprintf)
{
	AGREES("%d %i %u", -1, 2, 3u);
	AGREES("%ld %lu %lx", -1L, 2UL, 0xabcUL);
	AGREES("%lld %llu %llX", (long long)INT64_MIN, (unsigned long long)UINT64_MAX, 0xabcULL);
	AGREES("%zu %zx %jd %td", (size_t)1, SIZE_MAX, (intmax_t)-5, (ptrdiff_t)-6);
	AGREES("%hhd %hhu", (signed char)-1, (unsigned char)255);
	AGREES("%hd %hu", (short)-300, (unsigned short)65535);
	AGREES("%c%c%%", 'a', 'b');
	AGREES("[%s] [%5s] [%-5s] [%.2s] [%.*s]", "abc", "abc", "abc", "abc", 1, "abc");
	AGREES("[%5d] [%-5d] [%05d] [%.3d] [%*d] [%-*d]", -42, -42, -42, 7, 6, 7, -4, 8);
	AGREES("%p", (void *)&stdin);
	AGREES("%s", "");
}

Test(fmt, a_null_string_is_shown)
{
	char buf[16];
	const char *volatile null = NULL;

	tm_fmt(buf, sizeof(buf), "%s", null);
	cr_assert_str_eq(buf, "(null)");
}

Test(fmt, cuts_at_the_end_and_says_how_long_it_would_be)
{
	char buf[8];

	memset(buf, 'x', sizeof(buf));
	cr_assert_eq(tm_fmt(buf, 4, "%s", "abcdef"), 6);
	cr_assert_str_eq(buf, "abc");
	cr_assert_eq(buf[4], 'x');
	cr_assert_eq(tm_fmt(buf, 1, "%d", 5), 1);
	cr_assert_str_eq(buf, "");
	cr_assert_eq(tm_fmt(NULL, 0, "%d", 55), 2);
}

Test(fmt, an_output_takes_one_piece_after_the_other)
{
	char buf[8] = "";
	struct tm_fmt_out out = {buf, sizeof(buf), 0};

	tm_fmt_add(&out, "%s", "ab");
	tm_fmt_add_char(&out, 'c');
	tm_fmt_add_bytes(&out, "def", 3);
	cr_assert_str_eq(buf, "abcdef");
	cr_assert_eq(tm_fmt_stored(&out), 6);
	tm_fmt_add(&out, "%s", "ghi");
	cr_assert_str_eq(buf, "abcdefg");
	cr_assert_eq(out.len, 9);
	cr_assert_eq(tm_fmt_stored(&out), 7);
}

static void shows(size_t (*print)(char *, size_t, uint64_t), uint64_t value, const char *want)
{
	char buf[32];

	print(buf, sizeof(buf), value);
	cr_assert_str_eq(buf, want);
}

Test(fmt, bytes_for_people_have_three_digits)
{
	shows(tm_fmt_bytes, 0, "0");
	shows(tm_fmt_bytes, 17, "17 B");
	shows(tm_fmt_bytes, 1023, "1023 B");
	shows(tm_fmt_bytes, 1024, "1.0 KiB");
	shows(tm_fmt_bytes, 1536, "1.5 KiB");
	shows(tm_fmt_bytes, 209 << 20, "209 MiB");
	shows(tm_fmt_bytes, (1 << 20) - 1, "1023 KiB");
	shows(tm_fmt_bytes, UINT64_C(1) << 40, "1.0 TiB");
	shows(tm_fmt_bytes, UINT64_MAX, "15.9 EiB");
}

static void escapes(const char *text, size_t most, const char *want)
{
	char buf[64];
	struct tm_fmt_out out = {buf, sizeof(buf), 0};

	tm_fmt_add_escaped(&out, text, strlen(text), most);
	cr_assert_str_eq(buf, want);
}

Test(fmt, what_is_no_printable_ascii_is_escaped)
{
	escapes("a b~", 9, "a b~");
	escapes("\x1b[1m\xff\x7f\n", 99, "\\x1b[1m\\xff\\x7f\\x0a");
	escapes("12345", 5, "12345");
	escapes("123456", 5, "12345...");
	escapes("12\x80", 5, "12...");
}

Test(fmt, sizes_and_times_are_exact)
{
	shows(tm_fmt_size, 0, "0");
	shows(tm_fmt_size, 1000, "1000");
	shows(tm_fmt_size, 1 << 20, "1M");
	shows(tm_fmt_size, 3 << 19, "1536K");
	shows(tm_fmt_size, UINT64_C(1) << 50, "1024T");
	shows(tm_fmt_time, 0, "0ms");
	shows(tm_fmt_time, 1500, "1500ms");
	shows(tm_fmt_time, 10000, "10s");
	shows(tm_fmt_time, 7200000, "2h");
}

Test(fmt, fixed_point_has_its_digits)
{
	char buf[32];

	tm_fmt_fixed(buf, sizeof(buf), 1234, 2);
	cr_assert_str_eq(buf, "12.34");
	tm_fmt_fixed(buf, sizeof(buf), 5, 3);
	cr_assert_str_eq(buf, "0.005");
	tm_fmt_fixed(buf, sizeof(buf), 7, 0);
	cr_assert_str_eq(buf, "7");
}
