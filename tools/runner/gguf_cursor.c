/* SPDX-License-Identifier: MIT */
/* See gguf_cursor.h. */
#include "tools/runner/gguf_cursor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/runner/mem.h"

#define META_LIMIT (UINT64_C(32) << 20) /* the largest vocabularies take 16 MiB */

int yi_gguf_cursor_refuse(struct yi_gguf_cursor *cursor, uint64_t offset, const char *format, ...)
{
	char what[256];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	return yi_error_set(cursor->error, YI_EXIT_REFUSED, -EINVAL,
			    "%s: %s: %s at offset %" PRIu64, cursor->file->path, cursor->field,
			    what, offset);
}

void yi_gguf_cursor_name(struct yi_gguf_cursor *cursor, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(cursor->field, sizeof(cursor->field), format, args);
	va_end(args);
}

int yi_gguf_cursor_trouble(struct yi_gguf_cursor *cursor, int error, const char *what)
{
	return yi_error_set(cursor->error, YI_EXIT_TROUBLE, -error, "%s: %s: %s",
			    cursor->file->path, what, strerror(error));
}

/* Loads the file up to `end`, which is within it. */
static int load(struct yi_gguf_cursor *cursor, uint64_t end)
{
	struct yi_gguf *file = cursor->file;

	if (end > cursor->room) {
		uint64_t room = cursor->room ? cursor->room * 2 : 65536;
		uint8_t *meta;

		while (room < end)
			room *= 2;
		room = room < META_LIMIT ? room : META_LIMIT;
		room = room < file->file_bytes ? room : file->file_bytes;
		meta = yi_mem_resize(YI_MEM_OTHER, file->meta, room);
		if (!meta)
			return yi_gguf_cursor_trouble(cursor, ENOMEM, "metadata");
		file->meta = meta;
		cursor->room = room;
	}
	while (file->meta_bytes < end) {
		ssize_t got = pread(file->fd, file->meta + file->meta_bytes,
				    cursor->room - file->meta_bytes, (off_t)file->meta_bytes);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return yi_gguf_cursor_trouble(cursor, errno, "cannot be read");
		if (got == 0)
			return yi_gguf_cursor_trouble(cursor, EIO,
						      "became shorter while it was read");
		file->meta_bytes += (uint64_t)got;
	}
	return 0;
}

/* Makes the next `bytes` bytes available. */
int yi_gguf_cursor_need(struct yi_gguf_cursor *cursor, uint64_t bytes)
{
	uint64_t left = cursor->file->file_bytes - cursor->at;

	if (bytes > left)
		return yi_gguf_cursor_refuse(cursor, cursor->at,
					     "needs %" PRIu64 " bytes where the file has %" PRIu64,
					     bytes, left);
	if (bytes > META_LIMIT || cursor->at > META_LIMIT - bytes)
		return yi_gguf_cursor_refuse(cursor, cursor->at,
					     "needs %" PRIu64 " bytes, beyond the limit of %" PRIu64
					     " for metadata",
					     bytes, META_LIMIT);
	return load(cursor, cursor->at + bytes);
}

int yi_gguf_cursor_take(struct yi_gguf_cursor *cursor, void *ret, size_t bytes)
{
	int error = yi_gguf_cursor_need(cursor, bytes);

	if (error)
		return error;
	memcpy(ret, cursor->file->meta + cursor->at, bytes);
	cursor->at += bytes;
	return 0;
}
