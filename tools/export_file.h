/* SPDX-License-Identifier: MIT */
/* export_file: where an export goes. */
#ifndef TM_TOOLS_EXPORT_FILE_H
#define TM_TOOLS_EXPORT_FILE_H

#include "tools/export.h"

/*
 * Writes to a file that appears whole or not at all (a temporary one beside it is renamed), or to
 * standard output for '-'. An exit status; other than clean after one line on standard error.
 */
int tm_export_to(const struct tm_document *doc, const char *format,
		 const struct tm_export_options *options, const char *path);

/*
 * To be asked before anything is done for it. 0; or a status after one line where "path" is a ledger or
 * the file "input" (NULL: none), which it would replace, looks like an option, or cannot be written.
 */
int tm_export_check(const char *verb, const char *path, const char *input);

#endif
