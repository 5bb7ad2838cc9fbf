/* SPDX-License-Identifier: MIT */
/*
 * run_child: runs a command as a child that behaves as if started directly: same terminal, signals
 * and exit.
 */
#ifndef TM_TOOLS_RUN_CHILD_H
#define TM_TOOLS_RUN_CHILD_H

#include <sys/types.h>

#include "shim/base/attrs.h"

struct tm_run_end {
	pid_t pid;
	int status;       /* of waitpid */
	bool seen;        /* the library was in its memory map */
	bool looked_long; /* its memory map was read after the loader had finished */
};

/*
 * Runs the command to its end. Returns 0, or the exit status if it could not be started (after a
 * message).
 */
int tm_run_child(struct tm_run_end *ret_end, char **command, const char *library);

/*
 * Returns the command's exit status. If a signal ended the command, ends this process by the same
 * signal.
 */
int tm_run_child_status(const struct tm_run_end *end);

#endif
