/* SPDX-License-Identifier: MIT */
/*
 * run_account: the report of what "run" started. Its processes keep their ledgers in a folder, which
 * is ours unless the user named one; when the command has ended, by whatever end, its ledger is read
 * and the report printed on standard error, so that the command's own output stays what it is.
 */
#ifndef TM_TOOLS_RUN_ACCOUNT_H
#define TM_TOOLS_RUN_ACCOUNT_H

#include <limits.h>

#include "tools/fail_on.h"
#include "tools/run_child.h"

struct tm_run_account {
	bool active;
	bool folder_is_ours; /* to be removed */
	char folder[PATH_MAX];
	enum tm_doc_kind kind; /* 0: no text is printed */
	const char *json;      /* NULL, or files to write */
	const char *html;
	struct tm_fail_on fail_on;
};

/* Makes the folder where "dir" is NULL and sets the variables for the command. 0 or the exit status. */
int tm_run_account_open(struct tm_run_account *account, const char *dir);

/*
 * The command's own report first, then those of the large processes among those that it started.
 * TM_EXIT_FOUND where a condition of --fail-on holds, another status where a file can't be written.
 */
int tm_run_account_print(struct tm_run_account *account, const struct tm_run_end *end);

/* Removes the folder, if it is ours. */
void tm_run_account_close(struct tm_run_account *account);

#endif
