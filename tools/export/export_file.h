/* SPDX-License-Identifier: MIT */
/* export_file: writes exports to files. */
#ifndef TM_TOOLS_EXPORT_FILE_H
#define TM_TOOLS_EXPORT_FILE_H

#include "tools/export/export.h"

/*
 * Writes to a file that appears whole or not at all (a temporary file beside it is renamed), or to
 * standard output for '-'. Returns an exit status, other than clean after one line on standard
 * error.
 */
int tm_export_to(const struct tm_document *doc, const char *format,
		 const struct tm_export_options *options, const char *path);

/*
 * Checks a destination before any work is done for it. Returns 0, or a status after one line if
 * "path" is a ledger, is the input file ("input", may be NULL), looks like an option or can't be
 * written.
 */
int tm_export_check(const char *verb, const char *path, const char *input);

#endif
