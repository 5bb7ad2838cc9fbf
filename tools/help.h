/* SPDX-License-Identifier: MIT */
/*
 * help: the options of each verb, as 'tiermalloc VERB --help' prints them. One table. The verbs
 * that share their options (select.c) refuse any that it lacks, and a test compares it with
 * tiermalloc(1).
 */
#ifndef TM_TOOLS_HELP_H
#define TM_TOOLS_HELP_H

#include "shim/base/attrs.h"

/* Prints all verbs, one per line, on standard output. */
void tm_help_print_all(void);

/* Prints one verb's help; false: there is no such verb. */
bool tm_help_print(const char *verb);

/* Whether a verb has an option, such as "--top"; anything from '=' on is ignored. */
bool tm_help_has_option(const char *verb, const char *option);
bool tm_help_takes_value(const char *verb, const char *option);

#endif
