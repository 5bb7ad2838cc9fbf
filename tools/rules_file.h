/* SPDX-License-Identifier: MIT */
/*
 * rules_file: rules for the command, of a file or as TIERMALLOC_RULES holds them, with their mistakes
 * told on standard error.
 */
#ifndef TM_TOOLS_RULES_FILE_H
#define TM_TOOLS_RULES_FILE_H

#include "policies/rules.h"

struct tm_rules_file {
	struct tm_rules rules;
	struct tm_rule *memory; /* owned */
	char *text;             /* owned */
	const char *name;       /* for people: the path, or "--rules" */
	unsigned mistakes;
};

/*
 * `value` is a path, or rules with "->". 0; or -1 after one line on standard error: the file cannot be
 * read. Each mistake is one line.
 */
int tm_rules_file_open(struct tm_rules_file *file, const char *value);
void tm_rules_file_close(struct tm_rules_file *file);

/* Why a rule could not decide; NULL: it could. */
typedef const char *tm_rules_file_obstacle(const void *context, const struct tm_rule *rule);

/* Rules that never decided, one line each: "PATH:LINE: text (why)". Returns how many. */
unsigned tm_rules_file_print_unused(const struct tm_rules_file *file,
				    tm_rules_file_obstacle *obstacle, const void *context);

#endif
