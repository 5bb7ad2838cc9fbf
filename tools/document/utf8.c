/* SPDX-License-Identifier: MIT */
#include "tools/document/utf8.h"

#include <stdint.h>

size_t tm_utf8_length(const unsigned char *c)
{
	size_t len = c[0] < 0x80 ? 1 : c[0] < 0xc2 ? 0 : c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : 4;
	uint32_t point;

	if (len <= 1)
		return c[0] == 0 ? 0 : len;
	if (c[0] > 0xf4)
		return 0;
	point = c[0] & (0xffu >> (len + 1));
	for (size_t i = 1; i < len; i++) {
		if ((c[i] & 0xc0) != 0x80)
			return 0;
		point = point << 6 | (c[i] & 0x3f);
	}
	if ((len == 3 && point < 0x800) || (len == 4 && (point < 0x10000 || point > 0x10ffff)) ||
	    (point >= 0xd800 && point < 0xe000))
		return 0;
	return len;
}
