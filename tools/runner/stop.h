/* SPDX-License-Identifier: MIT */
/*
 * SIGINT and SIGTERM end a run in order: results so far are kept, saved and reported. A second
 * signal, half a second later or more, ends the process at once; earlier ones are ignored, because
 * wrappers forward a Ctrl-C that the terminal has already sent.
 */
#ifndef YI_STOP_H
#define YI_STOP_H

#include <stdbool.h>

/* Installs the handlers; signals that the process was started to ignore stay ignored. */
void yi_stop_watch(void);
bool yi_stop_wanted(void);
/*
 * For the end of main: returns 0, or after a signal 128 + its number, as shells do, and reports it
 * on standard error.
 */
int yi_stop_status(void);

#endif
