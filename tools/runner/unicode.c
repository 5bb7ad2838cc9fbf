/* SPDX-License-Identifier: MIT */
#include "tools/runner/unicode.h"

static const uint32_t runs[] = {
#include "tools/runner/unicode_runs.h"
};

#define RUNS (sizeof(runs) / sizeof(runs[0]))

enum yi_unicode_class yi_unicode_class(uint32_t code)
{
	size_t low = 0, high = RUNS;

	/* The run wanted is the last one that starts at or before the code point. */
	while (high - low > 1) {
		size_t middle = (low + high) / 2;

		if (runs[middle] >> 2 <= code)
			low = middle;
		else
			high = middle;
	}
	return (enum yi_unicode_class)(runs[low] & 3);
}

size_t yi_unicode_length(uint8_t lead)
{
	if (lead < 0xc0)
		return 1;
	return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

static int continues(const char *text, size_t bytes, size_t at)
{
	return at < bytes && ((uint8_t)text[at] & 0xc0) == 0x80;
}

size_t yi_unicode_decode(const char *text, size_t bytes, uint32_t *ret_code)
{
	uint8_t lead = (uint8_t)text[0];
	size_t length = yi_unicode_length(lead);
	uint32_t code = length == 1 ? lead : lead & (0xffu >> (length + 1));

	if ((lead >= 0x80 && lead < 0xc0) || lead >= 0xf8) {
		*ret_code = YI_UNICODE_REPLACEMENT;
		return 1;
	}
	for (size_t i = 1; i < length; i++) {
		if (!continues(text, bytes, i)) {
			*ret_code = YI_UNICODE_REPLACEMENT;
			return 1;
		}
		code = code << 6 | ((uint8_t)text[i] & 0x3fu);
	}
	*ret_code = code < 0x110000 ? code : YI_UNICODE_REPLACEMENT;
	return length;
}

size_t yi_unicode_encode(uint32_t code, char ret_bytes[YI_UNICODE_BYTES])
{
	size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
	static const uint8_t leads[] = {0, 0, 0xc0, 0xe0, 0xf0};

	for (size_t i = length - 1; i > 0; i--) {
		ret_bytes[i] = (char)(0x80 | (code & 0x3f));
		code >>= 6;
	}
	ret_bytes[0] = (char)(leads[length] | code);
	return length;
}

int yi_unicode_check(const char *text, size_t bytes)
{
	uint8_t lead = (uint8_t)text[0];
	size_t length = yi_unicode_length(lead);
	uint8_t low = 0x80, high = 0xbf;

	if (lead < 0x80)
		return 1;
	if (lead < 0xc2 || lead > 0xf4)
		return -1;
	/* The second byte excludes overlong forms, surrogates and what is beyond U+10FFFF. */
	if (lead == 0xe0)
		low = 0xa0;
	else if (lead == 0xed)
		high = 0x9f;
	else if (lead == 0xf0)
		low = 0x90;
	else if (lead == 0xf4)
		high = 0x8f;
	for (size_t i = 1; i < length; i++) {
		if (i >= bytes)
			return 0;
		if ((uint8_t)text[i] < low || (uint8_t)text[i] > high)
			return -(int)i;
		low = 0x80;
		high = 0xbf;
	}
	return (int)length;
}
