/* SPDX-License-Identifier: MIT */
/*
 * msg: the one place from which the library speaks: single lines "tiermalloc: ..." on descriptor 2,
 * each by one write(2). Never on 1, never through stdio. Any thread, any signal handler.
 *
 * At most TM_MSG_BURST lines a second; what was left out is counted in the next line. Descriptor 2
 * may have been closed and given to a file of the application (H72): a line goes out only if it is
 * what it was at boot, or no regular file, or one that is appended to, as logs are.
 */
#ifndef TM_OS_MSG_H
#define TM_OS_MSG_H

#include "shim/base/attrs.h"

#define TM_MSG_BURST 64 /* every variable may have a bad value */

/* Bits of the mask; TIERMALLOC_LOG chooses which are heard. Errors end the process and are always heard. */
enum tm_msg_level {
	TM_MSG_ERROR = 0,
	TM_MSG_WARN = 1 << 0,
	TM_MSG_INFO = 1 << 1,
	TM_MSG_CUDA = 1 << 2,
	TM_MSG_TIERS = 1 << 3,
	TM_MSG_GIVEBACK = 1 << 4,
};

/* Notes what descriptor 2 is. Called once at boot. */
void tm_msg_init(void);

/* Which levels are heard; TM_MSG_WARN until this was called. */
void tm_msg_set_mask(unsigned int mask);

/* For callers that would have to compute what they say. */
bool tm_msg_wants(enum tm_msg_level level);

/* Without "tiermalloc: " and newline; see fmt.h for what a format may hold. */
void tm_msg(enum tm_msg_level level, const char *format, ...) TM_PRINTF(2, 3);

/* An error of a call, as errno has it, in words. */
const char *tm_msg_reason(int error);

/* Whether descriptor 2 is still the one to speak on, as said above. */
bool tm_msg_has_stderr(void);

/*
 * Writes a text to a descriptor, whole; 0 or -errno, and never a signal: a reader that went, a limit of the
 * length of files are errors too. For reports.
 */
int tm_msg_write(int fd, const char *text, size_t len);

#endif
