/* SPDX-License-Identifier: MIT */
#include "tools/document_load.h"

#include <string.h>

#include "tools/analysis.h"

/* A report begins with a brace; a ledger cannot, its first word is a magic number. */
static bool is_json(const char *path)
{
	FILE *file;
	int c;

	if (strcmp(path, "-") == 0)
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
