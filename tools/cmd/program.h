/* SPDX-License-Identifier: MIT */
/* program: tells from a program's file whether the library would reach it. Runs nothing. */
#ifndef TM_TOOLS_PROGRAM_H
#define TM_TOOLS_PROGRAM_H

#include <limits.h>

#include "shim/base/attrs.h"

enum tm_reach {
	TM_REACH_OK,
	TM_REACH_NOTE,    /* works, with something to know */
	TM_REACH_PASSIVE, /* loaded, but serves nothing */
	TM_REACH_NONE,    /* not loaded */
};

#define TM_PROGRAM_FINDINGS 12

struct tm_finding {
	enum tm_reach reach;
	char text[256]; /* problem first, then what to do */
};

struct tm_program {
	char path[PATH_MAX];        /* file that the kernel executes */
	char interpreted[PATH_MAX]; /* script that it interprets, or empty */
	size_t count;
	struct tm_finding findings[TM_PROGRAM_FINDINGS];
};

/*
 * Looks a command up as execvp does and reads its file, following "#!" lines. Returns 0, or -errno
 * if it can't be found or read.
 */
int tm_program_look(struct tm_program *ret_program, const char *command);

/* The worst finding; TM_REACH_OK if there is none. */
enum tm_reach tm_program_reach(const struct tm_program *program);

/* Text of the first finding of that kind, or NULL. */
const char *tm_program_why(const struct tm_program *program, enum tm_reach reach);

#endif
