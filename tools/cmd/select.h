/* SPDX-License-Identifier: MIT */
/*
 * select: what the verbs that read ledgers share: their options, and how PID, LEDGER or DIR names a
 * ledger.
 */
#ifndef TM_TOOLS_SELECT_H
#define TM_TOOLS_SELECT_H

#include <limits.h>

#include "tools/analysis/analysis.h"
#include "tools/cmd/fail_on.h"
#include "tools/text/text.h"

struct tm_select {
	const char *verb;
	FILE *out;          /* NULL: print no text */
	const char *target; /* NULL: none was given */
	const char *from_json;
	const char *html;
	bool json;
	bool who_holds;
	bool no_scan;
	uint64_t since_ms; /* 0: the whole run */
	struct tm_text_options text;
	struct tm_analysis_options analysis;
	struct tm_fail_on fail_on;
	struct tm_doc_texts holders; /* holders of the blocks of --site, for --who-holds */
};

/*
 * Handles argv[*i] and its value, if any. Returns 0, an exit status, or -1: not one of these
 * options.
 */
int tm_select_option(struct tm_select *s, const char *verb, int argc, char **argv, int *i);

/* Sets the defaults. */
void tm_select_init(struct tm_select *s, enum tm_doc_kind kind);

/* Parses all arguments of a verb with one target. Returns 0 or an exit status. */
int tm_select_parse(struct tm_select *s, int argc, char **argv);

/*
 * Finds the ledger's path: for a process, in its mappings; for a file, the file itself; for a
 * folder, the largest ledger in it. Returns 0, or an exit status after one line on standard error.
 */
int tm_select_ledger(const char *target, char *buf, size_t size);

/* Folder of this user's ledgers: TIERMALLOC_DIR or the default. */
void tm_select_folder(char *buf, size_t size);

/* cmd_report.c: prints a filled document according to the options; returns the exit status. */
int tm_report_write(struct tm_select *s, struct tm_document *doc);

/*
 * Calls one(arg, path) for a file, or for each ledger of a folder, such as that of a process tree.
 * Ledgers in a folder that can't be read are skipped, with a message if `tells`. Returns the first
 * status that is not 0.
 */
int tm_select_each(const char *what, bool tells, int (*one)(void *arg, const char *path),
		   void *arg);

#endif
