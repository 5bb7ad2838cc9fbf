/* SPDX-License-Identifier: MIT */
/* gzip_stored: replaces gzip.c in builds without zlib: RFC 1952 with stored blocks of RFC 1951. */
#include "tools/buffer.h"

#define BLOCK_BYTES 65535u

static uint32_t crc32_of(const unsigned char *bytes, size_t len)
{
	uint32_t crc = ~UINT32_C(0);

	for (size_t i = 0; i < len; i++) {
		crc ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0xedb88320) : 0);
	}
	return ~crc;
}

static void add_number(struct tm_buffer *b, uint32_t value, int bytes)
{
	for (; bytes > 0; bytes--, value >>= 8)
		tm_buffer_add_byte(b, value & 0xff);
}

void tm_buffer_add_gzip(struct tm_buffer *b, const void *bytes, size_t len)
{
	static const unsigned char head[10] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3};
	const unsigned char *next = bytes;
	size_t left = len;

	tm_buffer_add(b, head, sizeof(head));
	do {
		uint32_t step = left < BLOCK_BYTES ? (uint32_t)left : BLOCK_BYTES;

		tm_buffer_add_byte(b, step == left); /* final flag; type: stored */
		add_number(b, step, 2);
		add_number(b, ~step, 2);
		tm_buffer_add(b, next, step);
		next += step;
		left -= step;
	} while (left > 0);
	add_number(b, crc32_of(bytes, len), 4);
	add_number(b, (uint32_t)len, 4);
}
