/* SPDX-License-Identifier: MIT */
/*
 * buffer: a growing byte buffer. Starts as zeros, ends with tm_buffer_clear(). Out of memory sets
 * `failed` and drops everything that follows, so the caller checks once, at the end.
 */
#ifndef TM_TOOLS_BUFFER_H
#define TM_TOOLS_BUFFER_H

#include "shim/base/attrs.h"

struct tm_buffer {
	unsigned char *at; /* owned */
	size_t len, room;
	bool failed;
};

void tm_buffer_add(struct tm_buffer *buffer, const void *bytes, size_t len);
void tm_buffer_add_byte(struct tm_buffer *buffer, unsigned char byte);
void tm_buffer_clear(struct tm_buffer *buffer);

/*
 * Appends the bytes as a gzip file; stored, not compressed, in a build without zlib. tools/export/gzip.c
 */
void tm_buffer_add_gzip(struct tm_buffer *buffer, const void *bytes, size_t len);

#endif
