/* SPDX-License-Identifier: MIT */
/*
 * run_account: the report on a command started by "run". Its processes keep their ledgers in a
 * folder, which is temporary unless the user named one. When the command has ended, however it
 * ended, its ledger is read and the report printed on standard error, so that the command's own
 * output stays unchanged.
 */
#ifndef TM_TOOLS_RUN_ACCOUNT_H
#define TM_TOOLS_RUN_ACCOUNT_H

#include <limits.h>

#include "tools/cmd/fail_on.h"
#include "tools/cmd/run_child.h"

struct tm_run_account {
	bool active;
	bool folder_is_ours; /* the folder is temporary and will be removed */
	char folder[PATH_MAX];
	enum tm_doc_kind kind; /* 0: no text is printed */
	const char *json;      /* NULL, or files to write */
	const char *html;
	struct tm_fail_on fail_on;
};

/*
 * Creates a temporary folder if "dir" is NULL, and sets the command's variables. Returns 0 or the
 * exit status.
 */
int tm_run_account_open(struct tm_run_account *account, const char *dir);

/*
 * Prints the command's own report, then those of the large ones among the processes that it
 * started. Returns TM_EXIT_FOUND if a condition of --fail-on holds, or another status if a file
 * can't be written.
 */
int tm_run_account_print(struct tm_run_account *account, const struct tm_run_end *end);

/* Removes the folder, if it is ours. */
void tm_run_account_close(struct tm_run_account *account);

#endif
