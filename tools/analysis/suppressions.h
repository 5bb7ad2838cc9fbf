/* SPDX-License-Identifier: MIT */
/*
 * suppressions: leaks that the user wants suppressed, in LeakSanitizer's format: lines
 * "leak:PATTERN"; '#' begins a comment. The pattern is searched in the functions, files and modules
 * of a site's stack; '*' matches any text, '^' and '$' the ends.
 */
#ifndef TM_TOOLS_SUPPRESSIONS_H
#define TM_TOOLS_SUPPRESSIONS_H

#include "tools/document/document.h"

struct tm_suppressions {
	char **pattern;
	size_t count;
};

/*
 * Reads "path", or else the file that suppressions= in LSAN_OPTIONS names, if any. Returns 0, or -1
 * after one line if the file can't be read; then nothing is suppressed.
 */
int tm_suppressions_read(struct tm_suppressions *s, const char *path);
void tm_suppressions_free(struct tm_suppressions *s);

bool tm_suppressions_match(const struct tm_suppressions *s, const struct tm_document *doc,
			   const struct tm_doc_site *site);

#endif
