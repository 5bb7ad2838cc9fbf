/* SPDX-License-Identifier: MIT */
/* See prompt.h. */
#include "tools/runner/prompt.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tools/runner/mem.h"

/* A longer text has more tokens than a context may have. */
#define MOST_BYTES ((size_t)1 << 30)

/* NULL: error is set and the block freed. */
static char *read_all(FILE *in, const char *path, size_t *ret_len, struct yi_error *error)
{
	char *text = NULL;
	size_t len = 0, room = 0, got;

	do {
		if (len == room) {
			char *more = yi_mem_resize(YI_MEM_REQUESTS, text, room * 2 + 4096);

			if (!more || room > MOST_BYTES) {
				yi_mem_free(YI_MEM_REQUESTS, more ? more : text);
				yi_error_set(error, YI_EXIT_TROUBLE, -ENOMEM, "%s: %s", path,
					     more ? "too long for a prompt" : "no memory for it");
				return NULL;
			}
			text = more;
			room = room * 2 + 4096;
		}
		got = fread(text + len, 1, room - len, in);
		len += got;
	} while (got);
	if (ferror(in)) {
		yi_error_set(error, YI_EXIT_TROUBLE, -EIO, "%s: cannot be read: %s", path,
			     strerror(errno));
		yi_mem_free(YI_MEM_REQUESTS, text);
		return NULL;
	}
	*ret_len = len;
	return text;
}

char *yi_prompt_read(const char *path, size_t *ret_len, struct yi_error *error)
{
	FILE *in = strcmp(path, "-") ? fopen(path, "re") : stdin;
	char *text;

	if (!in) {
		yi_error_set(error, YI_EXIT_TROUBLE, -errno, "%s: cannot be opened: %s", path,
			     strerror(errno));
		return NULL;
	}
	text = read_all(in, path, ret_len, error);
	if (in != stdin)
		fclose(in);
	return text;
}
