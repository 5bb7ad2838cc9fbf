/* SPDX-License-Identifier: MIT */
/*
 * rules_file: rules of a file for the command, with its mistakes told on standard error.
 */
#ifndef TM_TOOLS_RULES_FILE_H
#define TM_TOOLS_RULES_FILE_H

#include "policies/rules.h"

struct tm_rules_file {
	struct tm_rules rules;
	struct tm_rule *memory; /* owned */
	char *text;             /* owned */
	unsigned mistakes;
};

/* 0; or -1 after one line on standard error: the file cannot be read. Each mistake is one line. */
int tm_rules_file_open(struct tm_rules_file *file, const char *path);
void tm_rules_file_close(struct tm_rules_file *file);

/* Rules that never decided, one line each: "PATH:LINE: text". Returns how many. */
unsigned tm_rules_file_print_unused(const struct tm_rules *rules, const char *path);

#endif
