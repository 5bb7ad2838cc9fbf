/* SPDX-License-Identifier: MIT */
#include "tools/analysis/document_load.h"

#include <string.h>
#include <sys/stat.h>

#include "tools/analysis/analysis.h"

/*
 * Whether the file is a report: it begins with a brace, which a ledger's magic number can't. Only a
 * report can come through a pipe or a terminal, which must not be read here, since the bytes would
 * be lost.
 */
static bool is_json(const char *path)
{
	struct stat st;
	FILE *file;
	int c;

	if (strcmp(path, "-") == 0)
		return true;
	if (stat(path, &st) != 0 || S_ISDIR(st.st_mode))
		return false;
	if (!S_ISREG(st.st_mode))
		return true;
	file = fopen(path, "re");
	if (file == NULL)
		return false;
	do
		c = getc(file);
	while (c == ' ' || c == '\n' || c == '\t' || c == '\r');
	fclose(file);
	return c == '{';
}

static int load_ledger(struct tm_document *doc, const char *path, size_t symbol_sites)
{
	const struct tm_analysis_options options = {
		.kind = TM_DOC_FULL,
		.symbol_sites = symbol_sites,
	};
	struct tm_ledger ledger;

	if (tm_ledger_open(&ledger, path) != 0)
		return -1;
	int rc = tm_analysis_fill(doc, &ledger, &options);
	tm_ledger_close(&ledger);
	return rc;
}

int tm_document_load(struct tm_document *doc, const char *what)
{
	return is_json(what) ? tm_document_read_json(doc, what)
			     : load_ledger(doc, what, TM_ANALYSIS_ALL);
}

int tm_document_load_counts(struct tm_document *doc, const char *ledger)
{
	return load_ledger(doc, ledger, 0);
}
