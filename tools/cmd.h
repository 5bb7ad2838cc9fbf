/* SPDX-License-Identifier: MIT */
/*
 * cmd: what the verbs of the command share. There is one cmd_<verb>.c each. A verb gets the
 * arguments after its own name (argv[0] is the verb) and returns the exit status.
 */
#ifndef TM_TOOLS_CMD_H
#define TM_TOOLS_CMD_H

#include "shim/base/attrs.h"

/* Exit statuses, see tiermalloc(1). */
enum tm_exit {
	TM_EXIT_CLEAN = 0,
	TM_EXIT_TROUBLE = 1,
	TM_EXIT_USAGE = 2,
	TM_EXIT_FOUND = 3,
	TM_EXIT_INCONCLUSIVE = 4,
};

int tm_cmd_run(int argc, char **argv);
int tm_cmd_config(int argc, char **argv);
int tm_cmd_doctor(int argc, char **argv);
int tm_cmd_explain(int argc, char **argv);
int tm_cmd_export(int argc, char **argv);
int tm_cmd_ack(int argc, char **argv);
int tm_cmd_diff(int argc, char **argv);
int tm_cmd_gc(int argc, char **argv);
int tm_cmd_ls(int argc, char **argv);
int tm_cmd_merge(int argc, char **argv);
int tm_cmd_symbols(int argc, char **argv);
int tm_cmd_top(int argc, char **argv);
int tm_cmd_frag(int argc, char **argv);
int tm_cmd_leaks(int argc, char **argv);
int tm_cmd_serve(int argc, char **argv);
int tm_cmd_report(int argc, char **argv);
int tm_cmd_replay(int argc, char **argv);
int tm_cmd_trace(int argc, char **argv);
int tm_cmd_tune(int argc, char **argv);

/* Prints "tiermalloc: ..." and a newline on standard error. */
void tm_say(const char *format, ...) TM_PRINTF(1, 2);

/* The same; returns TM_EXIT_USAGE. */
int tm_say_usage(const char *format, ...) TM_PRINTF(1, 2);

/* The same, for a word that the verb does not take, and for an option without its value. */
int tm_say_unknown(const char *verb, const char *word);
int tm_say_no_value(const char *verb, const char *option);

/* The same, for a missing argument, such as "a trace". */
int tm_say_needs(const char *verb, const char *what);

/* Parses the value of a count. Returns 0, or the exit status after one line on standard error. */
int tm_take_count(const char *verb, const char *option, const char *value, size_t *ret_count);

#endif
