/* SPDX-License-Identifier: MIT */
/* fmt: see fmt.h. Owns nothing. */
#include "shim/base/fmt.h"

#include "shim/base/bits.h"

/* 64 bits in base 10 take 20 digits, in base 16 sixteen. */
#define NUMBER_MAX 24

enum length { LEN_INT, LEN_CHAR, LEN_SHORT, LEN_LONG, LEN_LLONG, LEN_SIZE, LEN_PTRDIFF, LEN_MAX };

struct spec {
	bool left;
	bool zeros;
	bool bounded; /* a precision was given */
	size_t width;
	size_t precision;
	enum length length;
};

void tm_fmt_add_char(struct tm_fmt_out *out, char c)
{
	if (out->len + 1 < out->size) {
		out->buf[out->len] = c;
		out->buf[out->len + 1] = '\0';
	}
	out->len++;
}

void tm_fmt_add_bytes(struct tm_fmt_out *out, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		tm_fmt_add_char(out, text[i]);
}

size_t tm_fmt_stored(const struct tm_fmt_out *out)
{
	if (out->size == 0)
		return 0;
	return tm_bits_min(out->len, out->size - 1);
}

void tm_fmt_defuse(struct tm_fmt_out *out, size_t from)
{
	for (size_t end = tm_fmt_stored(out); from < end; from++) {
		unsigned char c = (unsigned char)out->buf[from];

		if (c < ' ' || c == 127)
			out->buf[from] = '?';
	}
}

void tm_fmt_add_escaped(struct tm_fmt_out *out, const char *text, size_t len, size_t most)
{
	for (size_t i = 0, shown = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];
		bool is_plain = c >= ' ' && c < 127;

		shown += is_plain ? 1 : 4;
		if (shown > most) {
			tm_fmt_add(out, "...");
			return;
		}
		if (is_plain)
			tm_fmt_add_char(out, (char)c);
		else
			tm_fmt_add(out, "\\x%02x", c);
	}
}

static void add_fill(struct tm_fmt_out *out, char c, size_t count)
{
	while (count-- > 0)
		tm_fmt_add_char(out, c);
}

static size_t digits_of(uint64_t value, unsigned int base, bool upper, char *ret_end)
{
	const char *set = upper ? "0123456789ABCDEF" : "0123456789abcdef";
	size_t n = 0;

	do {
		*--ret_end = set[value % base];
		value /= base;
		n++;
	} while (value);
	return n;
}

static void add_number(struct tm_fmt_out *out, const struct spec *spec, const char *prefix,
		       const char *digits, size_t n)
{
	size_t prefix_len = 0;
	size_t zeros = spec->bounded && spec->precision > n ? spec->precision - n : 0;
	size_t used;

	while (prefix[prefix_len])
		prefix_len++;
	used = prefix_len + zeros + n;
	if (spec->zeros && !spec->left && !spec->bounded && spec->width > used) {
		zeros += spec->width - used;
		used = spec->width;
	}
	if (!spec->left && spec->width > used)
		add_fill(out, ' ', spec->width - used);
	tm_fmt_add_bytes(out, prefix, prefix_len);
	add_fill(out, '0', zeros);
	tm_fmt_add_bytes(out, digits, n);
	if (spec->left && spec->width > used)
		add_fill(out, ' ', spec->width - used);
}

static void add_unsigned(struct tm_fmt_out *out, const struct spec *spec, uint64_t value, char conv)
{
	char digits[NUMBER_MAX];
	char *end = digits + sizeof(digits);
	size_t n = digits_of(value, conv == 'u' ? 10 : 16, conv == 'X', end);

	add_number(out, spec, conv == 'p' ? "0x" : "", end - n, n);
}

static void add_signed(struct tm_fmt_out *out, const struct spec *spec, int64_t value)
{
	char digits[NUMBER_MAX];
	char *end = digits + sizeof(digits);
	uint64_t size = value < 0 ? -(uint64_t)value : (uint64_t)value;
	size_t n = digits_of(size, 10, false, end);

	add_number(out, spec, value < 0 ? "-" : "", end - n, n);
}

static void add_string(struct tm_fmt_out *out, const struct spec *spec, const char *text,
		       size_t most)
{
	size_t n = 0;

	if (text == NULL)
		text = "(null)";
	while ((!spec->bounded || n < spec->precision) && text[n])
		n++;
	if (!spec->left && spec->width > n)
		add_fill(out, ' ', spec->width - n);
	tm_fmt_add_bytes(out, text, tm_bits_min(n, most));
	if (n > most)
		tm_fmt_add_bytes(out, "...", 3);
	if (spec->left && spec->width > n)
		add_fill(out, ' ', spec->width - n);
}

/* va_list travels by a pointer to a structure: an array type would decay differently per target. */
struct arguments {
	va_list list;
};

/* A width of '*' that is negative is the flag '-' and a width; a negative precision counts as 0. */
static const char *parse_count(const char *at, struct arguments *args, size_t *ret_count,
			       bool *ret_left)
{
	size_t count = 0;

	if (*at == '*') {
		int value = va_arg(args->list, int);

		*ret_left |= value < 0;
		*ret_count = (size_t)(value < 0 ? -(long)value : (long)value);
		return at + 1;
	}
	while (*at >= '0' && *at <= '9')
		count = count * 10 + (size_t)(*at++ - '0');
	*ret_count = count;
	return at;
}

static const char *parse_length(const char *at, struct spec *spec)
{
	spec->length = LEN_INT;
	switch (*at) {
	case 'h':
		spec->length = at[1] == 'h' ? LEN_CHAR : LEN_SHORT;
		return at + (at[1] == 'h' ? 2 : 1);
	case 'l':
		spec->length = at[1] == 'l' ? LEN_LLONG : LEN_LONG;
		return at + (at[1] == 'l' ? 2 : 1);
	case 'z': spec->length = LEN_SIZE; return at + 1;
	case 't': spec->length = LEN_PTRDIFF; return at + 1;
	case 'j': spec->length = LEN_MAX; return at + 1;
	default: return at;
	}
}

static const char *parse_spec(const char *at, struct arguments *args, struct spec *spec)
{
	bool negative = false;

	*spec = (struct spec){.left = false};
	for (;; at++) {
		if (*at == '-')
			spec->left = true;
		else if (*at == '0')
			spec->zeros = true;
		else
			break;
	}
	at = parse_count(at, args, &spec->width, &spec->left);
	if (*at == '.') {
		spec->bounded = true;
		at = parse_count(at + 1, args, &spec->precision, &negative);
		if (negative)
			spec->precision = 0;
	}
	return parse_length(at, spec);
}

static int64_t next_signed(struct arguments *args, enum length length)
{
	switch (length) {
	case LEN_CHAR: return (signed char)va_arg(args->list, int);
	case LEN_SHORT: return (short)va_arg(args->list, int);
	case LEN_LONG: return va_arg(args->list, long);
	case LEN_LLONG: return va_arg(args->list, long long);
	case LEN_SIZE:
	case LEN_PTRDIFF: return va_arg(args->list, ptrdiff_t);
	case LEN_MAX: return va_arg(args->list, intmax_t);
	case LEN_INT:
	default: return va_arg(args->list, int);
	}
}

static uint64_t next_unsigned(struct arguments *args, enum length length)
{
	switch (length) {
	case LEN_CHAR: return (unsigned char)va_arg(args->list, unsigned int);
	case LEN_SHORT: return (unsigned short)va_arg(args->list, unsigned int);
	case LEN_LONG: return va_arg(args->list, unsigned long);
	case LEN_LLONG: return va_arg(args->list, unsigned long long);
	case LEN_SIZE:
	case LEN_PTRDIFF: return va_arg(args->list, size_t);
	case LEN_MAX: return va_arg(args->list, uintmax_t);
	case LEN_INT:
	default: return va_arg(args->list, unsigned int);
	}
}

/* False for a conversion that is not known. */
static bool add_conversion(struct tm_fmt_out *out, const struct spec *spec, char conv,
			   struct arguments *args, size_t most)
{
	char c;

	switch (conv) {
	case 'd':
	case 'i': add_signed(out, spec, next_signed(args, spec->length)); return true;
	case 'u':
	case 'x':
	case 'X': add_unsigned(out, spec, next_unsigned(args, spec->length), conv); return true;
	case 'p': add_unsigned(out, spec, (uintptr_t)va_arg(args->list, void *), 'p'); return true;
	case 's': add_string(out, spec, va_arg(args->list, const char *), most); return true;
	case 'c':
		c = (char)va_arg(args->list, int);
		tm_fmt_add_bytes(out, &c, 1);
		return true;
	case '%': tm_fmt_add_char(out, '%'); return true;
	default: return false;
	}
}

TM_AT_START_CODE void tm_fmt_add_cut(struct tm_fmt_out *out, size_t most, const char *format,
				     va_list list)
{
	struct arguments args;
	struct spec spec;

	va_copy(args.list, list);
	while (*format) {
		const char *start = format;

		if (*format != '%') {
			tm_fmt_add_char(out, *format++);
			continue;
		}
		format = parse_spec(format + 1, &args, &spec);
		if (*format && add_conversion(out, &spec, *format, &args, most)) {
			format++;
			continue;
		}
		tm_fmt_add_bytes(out, start, (size_t)(format - start));
	}
	va_end(args.list);
}

TM_AT_START_CODE void tm_fmt_add_v(struct tm_fmt_out *out, const char *format, va_list list)
{
	tm_fmt_add_cut(out, SIZE_MAX, format, list);
}

void tm_fmt_add(struct tm_fmt_out *out, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	tm_fmt_add_v(out, format, args);
	va_end(args);
}

size_t tm_fmt_v(char *buf, size_t size, const char *format, va_list args)
{
	struct tm_fmt_out out = {buf, size, 0};

	if (size > 0)
		buf[0] = '\0';
	tm_fmt_add_v(&out, format, args);
	return out.len;
}

TM_AT_START_CODE size_t tm_fmt(char *buf, size_t size, const char *format, ...)
{
	va_list args;
	size_t len;

	va_start(args, format);
	len = tm_fmt_v(buf, size, format, args);
	va_end(args);
	return len;
}

size_t tm_fmt_fixed(char *buf, size_t size, uint64_t value, unsigned int digits)
{
	uint64_t scale = 1;

	for (unsigned int i = 0; i < digits; i++)
		scale *= 10;
	if (digits == 0)
		return tm_fmt(buf, size, "%llu", (unsigned long long)value);
	return tm_fmt(buf, size, "%llu.%0*llu", (unsigned long long)(value / scale), (int)digits,
		      (unsigned long long)(value % scale));
}

size_t tm_fmt_bytes(char *buf, size_t size, uint64_t bytes)
{
	static const char units[] = "KMGTPE";
	unsigned int unit = 0;
	uint64_t tenths;

	if (bytes < 1024)
		return tm_fmt(buf, size, bytes ? "%llu B" : "%llu", (unsigned long long)bytes);
	while (unit < 5 && bytes >> (10 * (unit + 2)))
		unit++;
	tenths = (uint64_t)((tm_u128)bytes * 10 >> (10 * (unit + 1)));
	if (tenths < 1000)
		return tm_fmt(buf, size, "%llu.%llu %ciB", (unsigned long long)(tenths / 10),
			      (unsigned long long)(tenths % 10), units[unit]);
	return tm_fmt(buf, size, "%llu %ciB", (unsigned long long)(tenths / 10), units[unit]);
}

size_t tm_fmt_size(char *buf, size_t size, uint64_t bytes)
{
	static const char units[] = "KMGT";
	unsigned int unit = 0;

	if (bytes == 0 || bytes & 1023)
		return tm_fmt(buf, size, "%llu", (unsigned long long)bytes);
	bytes >>= 10;
	while (unit < 3 && (bytes & 1023) == 0) {
		bytes >>= 10;
		unit++;
	}
	return tm_fmt(buf, size, "%llu%c", (unsigned long long)bytes, units[unit]);
}

size_t tm_fmt_time(char *buf, size_t size, uint64_t ms)
{
	if (ms == 0 || ms % 1000)
		return tm_fmt(buf, size, "%llums", (unsigned long long)ms);
	if (ms % 60000)
		return tm_fmt(buf, size, "%llus", (unsigned long long)(ms / 1000));
	if (ms % 3600000)
		return tm_fmt(buf, size, "%llum", (unsigned long long)(ms / 60000));
	return tm_fmt(buf, size, "%lluh", (unsigned long long)(ms / 3600000));
}
