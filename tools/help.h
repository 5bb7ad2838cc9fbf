/* SPDX-License-Identifier: MIT */
/*
 * help: what each verb takes, as 'tiermalloc VERB --help' prints it. One table; options that are not in
 * it are refused by the verbs that share theirs (select.c), and a test holds it against tiermalloc(1).
 */
#ifndef TM_TOOLS_HELP_H
#define TM_TOOLS_HELP_H

#include "shim/base/attrs.h"

/* All verbs, a line each, on standard output. */
void tm_help_print_all(void);

/* One verb's; false: there is none of that name. */
bool tm_help_print(const char *verb);

/* "--top" of "explain"; what follows a '=' does not count. */
bool tm_help_has_option(const char *verb, const char *option);
bool tm_help_takes_value(const char *verb, const char *option);

#endif
