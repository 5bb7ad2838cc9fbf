/* SPDX-License-Identifier: MIT */
/*
 * rules_file: reads rules for the command, from a file or in the format of TIERMALLOC_RULES, and
 * reports mistakes on standard error.
 */
#ifndef TM_TOOLS_RULES_FILE_H
#define TM_TOOLS_RULES_FILE_H

#include "policies/rules.h"

struct tm_rules_file {
	struct tm_rules rules;
	struct tm_rule *memory; /* owned */
	char *text;             /* owned */
	const char *name;       /* name in messages: the path, or "--rules" */
	unsigned mistakes;
};

/*
 * `value` is a path, or rules (if it contains "->"). Returns 0, or -1 after one line on standard
 * error if the file can't be read. Prints one line for each mistake.
 */
int tm_rules_file_open(struct tm_rules_file *file, const char *value);
void tm_rules_file_close(struct tm_rules_file *file);

/* Why a rule could not decide anything; NULL: it could. */
typedef const char *tm_rules_file_obstacle(const void *context, const struct tm_rule *rule);

/* Prints the rules that never decided, one line each: "PATH:LINE: text (why)". Returns how many. */
unsigned tm_rules_file_print_unused(const struct tm_rules_file *file,
				    tm_rules_file_obstacle *obstacle, const void *context);

#endif
