/* SPDX-License-Identifier: MIT */
#include "tools/buffer.h"

#include <stdlib.h>
#include <string.h>

static bool reserve(struct tm_buffer *b, size_t len)
{
	size_t room = b->room ? b->room : 4096;
	unsigned char *wider;

	if (b->failed || len > SIZE_MAX / 2 - b->len) {
		b->failed = true;
		return false;
	}
	if (b->len + len <= b->room)
		return true;
	while (room < b->len + len)
		room *= 2;
	wider = realloc(b->at, room);
	if (wider == NULL) {
		b->failed = true;
		return false;
	}
	b->at = wider;
	b->room = room;
	return true;
}

void tm_buffer_add(struct tm_buffer *b, const void *bytes, size_t len)
{
	if (len == 0 || !reserve(b, len))
		return;
	memcpy(b->at + b->len, bytes, len);
	b->len += len;
}

void tm_buffer_add_byte(struct tm_buffer *b, unsigned char byte)
{
	if (b->len == b->room && !reserve(b, 1))
		return;
	b->at[b->len++] = byte;
}

void tm_buffer_clear(struct tm_buffer *b)
{
	free(b->at);
	memset(b, 0, sizeof(*b));
}
