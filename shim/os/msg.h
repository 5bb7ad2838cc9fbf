/* SPDX-License-Identifier: MIT */
/*
 * msg: the only output of messages: single lines "tiermalloc: ..." to descriptor 2, each by one
 * write(2). Never to descriptor 1, never by stdio. Any thread, any signal handler.
 *
 * At most TM_MSG_BURST lines a second; the next line tells how many were suppressed. The
 * application may have closed descriptor 2 and reused its number for a file (H72): a line is
 * written only if the descriptor still refers to the same file as at boot, or isn't a regular file,
 * or is in append mode (as logs are).
 */
#ifndef TM_OS_MSG_H
#define TM_OS_MSG_H

#include "shim/base/attrs.h"

#define TM_MSG_BURST 64 /* every variable may have a bad value */

/* Bits of the mask set by TIERMALLOC_LOG. Errors end the process and are always printed. */
enum tm_msg_level {
	TM_MSG_ERROR = 0,
	TM_MSG_WARN = 1 << 0,
	TM_MSG_INFO = 1 << 1,
	TM_MSG_CUDA = 1 << 2,
	TM_MSG_TIERS = 1 << 3,
	TM_MSG_GIVEBACK = 1 << 4,
};

/* Remembers which file descriptor 2 refers to. Called once at boot. */
void tm_msg_init(void);

/* Sets the levels to print; initially TM_MSG_WARN. */
void tm_msg_set_mask(unsigned int mask);

/* Whether this level is printed; for callers whose message is costly to compute. */
bool tm_msg_wants(enum tm_msg_level level);

/* Prints a line. format: without "tiermalloc: " and newline; fmt.h lists the conversions. */
void tm_msg(enum tm_msg_level level, const char *format, ...) TM_PRINTF(2, 3);

/* The text of an errno value. */
const char *tm_msg_reason(int error);

/* Whether descriptor 2 may still be written to (see above). */
bool tm_msg_has_stderr(void);

/*
 * Writes a text to a descriptor completely; for reports. 0 or -errno. A closed pipe or the file
 * size limit is an error too, never a signal (SIGPIPE, SIGXFSZ).
 */
int tm_msg_write(int fd, const char *text, size_t len);

#endif
