/* SPDX-License-Identifier: MIT */
/*
 * The parser's position in a model file; used by gguf*.c only.
 *
 * It refuses to pass the end of the file, and loads metadata in growing pieces on demand, so that
 * what a hostile file makes us allocate is bounded by its real size and by a limit.
 */
#ifndef YI_GGUF_CURSOR_H
#define YI_GGUF_CURSOR_H

#include "tools/runner/gguf.h"

struct yi_gguf_cursor {
	struct yi_gguf *file;
	struct yi_error *error;
	uint64_t at;    /* next byte */
	uint64_t room;  /* bytes allocated for file->meta */
	char field[80]; /* name of what is being read, for messages */
};

/* Each returns 0 or a negative errno with the error filled. */
int yi_gguf_cursor_refuse(struct yi_gguf_cursor *cursor, uint64_t offset, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
int yi_gguf_cursor_trouble(struct yi_gguf_cursor *cursor, int error, const char *what);
/* Makes the next `bytes` bytes available at file->meta + at. */
int yi_gguf_cursor_need(struct yi_gguf_cursor *cursor, uint64_t bytes);
/* Copies the next bytes and advances past them. */
int yi_gguf_cursor_take(struct yi_gguf_cursor *cursor, void *ret, size_t bytes);
/* Names what is read next, for messages. */
void yi_gguf_cursor_name(struct yi_gguf_cursor *cursor, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* A table for `count` names, at most half full; its slots are a power of 2.  NULL: no memory. */
uint32_t *yi_gguf_index_create(uint32_t count, uint32_t *ret_slots);
/* The slot of that name, which holds its number + 1, or the free slot where it belongs. */
uint32_t *yi_gguf_index_slot(const struct yi_gguf *file, uint32_t *index, uint32_t slots,
			     struct yi_text name);

#endif
