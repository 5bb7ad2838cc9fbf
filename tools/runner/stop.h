/* SPDX-License-Identifier: MIT */
/*
 * SIGINT and SIGTERM end a run in order: what was computed until then is kept, saved and reported.
 * A second signal, half a second later or more, ends the process at once: wrappers pass on a
 * Ctrl-C that the terminal has sent already.
 */
#ifndef YI_STOP_H
#define YI_STOP_H

#include <stdbool.h>

/* Watches from now on; what the process was started to ignore stays ignored. */
void yi_stop_watch(void);
bool yi_stop_wanted(void);
/* For the end of main: 0, or after a signal 128 + its number, as shells have it; tells of it on
 * standard error. */
int yi_stop_status(void);

#endif
