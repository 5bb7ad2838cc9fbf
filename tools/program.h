/* SPDX-License-Identifier: MIT */
/*
 * program: whether the library reaches a program, by its file alone. Nothing is run.
 */
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
	char path[PATH_MAX];        /* the file that the kernel runs */
	char interpreted[PATH_MAX]; /* the script it reads, or empty */
	size_t count;
	struct tm_finding findings[TM_PROGRAM_FINDINGS];
};

/*
 * Looks a command up as execvp does and reads its file; follows "#!" lines. 0, or -errno when it
 * cannot be found or read.
 */
int tm_program_look(struct tm_program *ret_program, const char *command);

/* The worst finding; TM_REACH_OK when there is none. */
enum tm_reach tm_program_reach(const struct tm_program *program);

/* The text of the first finding of that reach, or NULL. */
const char *tm_program_why(const struct tm_program *program, enum tm_reach reach);

#endif
