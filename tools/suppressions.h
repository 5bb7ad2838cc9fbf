/* SPDX-License-Identifier: MIT */
/*
 * suppressions: leaks that the user does not want to hear of, in the form of LeakSanitizer: lines
 * "leak:PATTERN", '#' begins a comment. The pattern is looked for in the functions, files and modules
 * of a site's stack; '*' stands for any text, '^' and '$' for the ends.
 */
#ifndef TM_TOOLS_SUPPRESSIONS_H
#define TM_TOOLS_SUPPRESSIONS_H

#include "tools/document.h"

struct tm_suppressions {
	char **pattern;
	size_t count;
};

/*
 * "path", else what suppressions= of LSAN_OPTIONS names, else none. 0; -1 after one line where the
 * file cannot be read, which suppresses nothing.
 */
int tm_suppressions_read(struct tm_suppressions *s, const char *path);
void tm_suppressions_free(struct tm_suppressions *s);

bool tm_suppressions_match(const struct tm_suppressions *s, const struct tm_document *doc,
			   const struct tm_doc_site *site);

#endif
