/* SPDX-License-Identifier: MIT */
/*
 * run_account: the account that the library writes when the command ends, for "run --report full".
 * The library writes one file a process into a folder of ours; they are printed on standard error,
 * so that the command's own output stays what it is.
 */
#ifndef TM_TOOLS_RUN_ACCOUNT_H
#define TM_TOOLS_RUN_ACCOUNT_H

#include <limits.h>

#include "shim/base/attrs.h"
#include "tools/run_child.h"

struct tm_run_account {
	bool active;
	char folder[PATH_MAX]; /* ours; empty where the user chose a file */
};

/* Makes the folder and sets the variables for the command. 0 or the exit status. */
int tm_run_account_open(struct tm_run_account *account);

/* The command's own account first, then those of the large processes among those that it started. */
void tm_run_account_print(const struct tm_run_account *account, const struct tm_run_end *end);

/* Removes the folder. */
void tm_run_account_close(struct tm_run_account *account);

#endif
