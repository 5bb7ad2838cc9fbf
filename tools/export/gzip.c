/* SPDX-License-Identifier: MIT */
/* gzip: writes RFC 1952 files by zlib; gzip_stored.c replaces it in builds without zlib. */
#include <string.h>
#include <zlib.h>

#include "tools/buffer.h"

void tm_buffer_add_gzip(struct tm_buffer *b, const void *bytes, size_t len)
{
	z_stream z;
	unsigned char part[16384];
	const unsigned char *next = bytes;
	int rc = Z_OK;

	memset(&z, 0, sizeof(z));
	/* 16 selects a gzip header, without a time, so that equal input gives equal files */
	if (deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
		b->failed = true;
		return;
	}
	while (rc == Z_OK || rc == Z_BUF_ERROR) {
		if (z.avail_in == 0 && len > 0) {
			size_t step = len < (1u << 30) ? len : 1u << 30;

			z.next_in = (unsigned char *)(uintptr_t)next;
			z.avail_in = (uInt)step;
			next += step;
			len -= step;
		}
		z.next_out = part;
		z.avail_out = sizeof(part);
		rc = deflate(&z, len == 0 ? Z_FINISH : Z_NO_FLUSH);
		tm_buffer_add(b, part, sizeof(part) - z.avail_out);
	}
	if (rc != Z_STREAM_END)
		b->failed = true;
	deflateEnd(&z);
}
