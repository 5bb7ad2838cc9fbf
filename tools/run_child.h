/* SPDX-License-Identifier: MIT */
/*
 * run_child: one command as a child that feels as if it were started directly: same terminal, same
 * signals, same end.
 */
#ifndef TM_TOOLS_RUN_CHILD_H
#define TM_TOOLS_RUN_CHILD_H

#include <sys/types.h>

#include "shim/base/attrs.h"

struct tm_run_end {
	pid_t pid;
	int status;       /* of waitpid */
	bool seen;        /* the library was in its memory map */
	bool looked_long; /* its map could be read after the loader was done */
};

/* Runs the command to its end. 0, or the exit status when it could not be started (said already). */
int tm_run_child(struct tm_run_end *ret_end, char **command, const char *library);

/* The command's exit status; where a signal ended it, this process ends by the same. */
int tm_run_child_status(const struct tm_run_end *end);

#endif
