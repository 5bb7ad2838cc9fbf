/* SPDX-License-Identifier: MIT */
/*
 * buffer: bytes that grow. Start from zeros, end with tm_buffer_clear(). Without memory `failed` is
 * set and everything more is dropped: asked once, at the end.
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

/* A gzip file of the bytes; stored, not compressed, where built without zlib. tools/gzip.c */
void tm_buffer_add_gzip(struct tm_buffer *buffer, const void *bytes, size_t len);

#endif
