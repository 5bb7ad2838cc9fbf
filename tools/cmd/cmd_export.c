/* SPDX-License-Identifier: MIT */
/* cmd_export: writes a ledger, or a report in JSON, in the format of another tool. */
#include <stdlib.h>
#include <string.h>

#include "tools/analysis/document_load.h"
#include "tools/cmd.h"
#include "tools/cmd/select.h"
#include "tools/document/document_fields.h"
#include "tools/export/export_file.h"

struct arguments {
	struct tm_export_options options;
	const char *format, *from, *to;
};

static int take_view(struct arguments *a, const char *value)
{
	a->options.view = tm_view_find(value);
	if (a->options.view == TM_VIEWS)
		return tm_say_usage(
			"unknown view '%s', choose from live, growth, alloc, temporary, "
			"pinned, unreachable",
			value);
	return TM_EXIT_CLEAN;
}

/* Handles an option with a value; -1: unknown option. */
static int take_valued(struct arguments *a, const char *name, const char *value)
{
	bool known = strcmp(name, "--format") == 0 || strcmp(name, "-o") == 0 ||
		     strcmp(name, "--view") == 0 || strcmp(name, "--top-sites") == 0;

	if (!known)
		return -1;
	if (value == NULL)
		return tm_say_no_value("export", name);
	if (strcmp(name, "--view") == 0)
		return take_view(a, value);
	if (strcmp(name, "--top-sites") == 0)
		return tm_take_count("export", name, value, &a->options.top_sites);
	if (strcmp(name, "--format") == 0)
		a->format = value;
	else
		a->to = value;
	return TM_EXIT_CLEAN;
}

static int take_plain(struct arguments *a, const char *word)
{
	if (strcmp(word, "--include-source") == 0)
		a->options.include_source = true;
	else if (strcmp(word, "--uncompressed") == 0)
		a->options.uncompressed = true;
	else if (word[0] == '-' && word[1] != '\0')
		return tm_say_unknown("export", word);
	else if (a->from)
		return tm_say_usage("more than one ledger: '%s'", word);
	else
		a->from = word;
	return TM_EXIT_CLEAN;
}

static int take_all(struct arguments *a, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		/* NULL after the last argument */
		int status = take_valued(a, argv[i], argv[i + 1]);

		if (status == -1)
			status = take_plain(a, argv[i]);
		else
			i++;
		if (status != TM_EXIT_CLEAN)
			return status;
	}
	return TM_EXIT_CLEAN;
}

int tm_cmd_export(int argc, char **argv)
{
	struct arguments a = {.to = NULL};
	struct tm_document doc;
	char path[PATH_MAX];

	if (argc == 2 && strcmp(argv[1], "--schema") == 0)
		return tm_fields_write_schema(stdout) ? TM_EXIT_CLEAN : TM_EXIT_TROUBLE;
	int status = take_all(&a, argc, argv);

	if (status != TM_EXIT_CLEAN)
		return status;
	if (a.format == NULL)
		return tm_say_usage("export: needs '--format' with one of %s", tm_export_names());
	if (tm_export_find(a.format) == NULL)
		return tm_say_usage("unknown format '%s', choose from %s", a.format,
				    tm_export_names());
	if (a.from == NULL)
		return tm_say_needs("export", "a process, a ledger or a folder");
	if (a.to == NULL)
		return tm_say_needs("export", "'-o FILE' ('-': standard output)");
	/* Like the reports, accepts a process or a folder. */
	if (strcmp(a.from, "-") != 0) {
		status = tm_select_ledger(a.from, path, sizeof(path));
		if (status != TM_EXIT_CLEAN)
			return status;
		a.from = path;
	}
	status = tm_export_check("export", a.to, a.from);
	if (status != TM_EXIT_CLEAN)
		return status;
	tm_document_init(&doc);
	status = tm_document_load(&doc, a.from) == 0
			 ? tm_export_to(&doc, a.format, &a.options, a.to)
			 : TM_EXIT_USAGE;
	tm_document_clear(&doc);
	return status;
}
