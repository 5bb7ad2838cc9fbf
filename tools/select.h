/* SPDX-License-Identifier: MIT */
/*
 * select: what the verbs that read ledgers have in common: their options, and which ledger a user
 * means by PID, LEDGER or DIR.
 */
#ifndef TM_TOOLS_SELECT_H
#define TM_TOOLS_SELECT_H

#include <limits.h>

#include "tools/analysis.h"
#include "tools/fail_on.h"
#include "tools/text.h"

struct tm_select {
	const char *verb;
	FILE *out;          /* NULL: no text */
	const char *target; /* NULL: none was given */
	const char *from_json;
	const char *html;
	bool json;
	bool who_holds;
	bool no_scan;
	uint64_t since_ms; /* 0: all of the time */
	struct tm_text_options text;
	struct tm_analysis_options analysis;
	struct tm_fail_on fail_on;
	struct tm_doc_texts holders; /* of --site, with --who-holds */
};

/* Takes "*i" and perhaps its value; 0, an exit status, or -1: no option of these. */
int tm_select_option(struct tm_select *s, const char *verb, int argc, char **argv, int *i);

/* Defaults. */
void tm_select_init(struct tm_select *s, enum tm_doc_kind kind);

/* All arguments of a verb with one target; 0 or an exit status. */
int tm_select_parse(struct tm_select *s, int argc, char **argv);

/*
 * The ledger's path: that of a process, by its mappings; the file itself; of a folder the one that
 * allocated most. 0, or an exit status after one line on standard error.
 */
int tm_select_ledger(const char *target, char *buf, size_t size);

/* The folder of this user's ledgers, by TIERMALLOC_DIR or the default. */
void tm_select_folder(char *buf, size_t size);

/* cmd_report.c: prints a filled document as the options say; the exit status. */
int tm_report_write(struct tm_select *s, struct tm_document *doc);

/*
 * Calls one(arg, path) for a file, or for each ledger of a folder: of a process tree, where it has one of
 * its own. What cannot be read there is left out, with a line if `tells`. The first status that is not 0.
 */
int tm_select_each(const char *what, bool tells, int (*one)(void *arg, const char *path),
		   void *arg);

#endif
