/* SPDX-License-Identifier: MIT */
/*
 * scan: which objects nothing points to, found in a running process without ptrace.
 *
 * The process forks an image of itself (raw clone: no handler runs, nobody is told by SIGCHLD). The
 * image marks what can be reached from writable private memory that is not the allocator's (stacks,
 * data, thread-local storage, other allocators' pages) and writes bits for the rest into the ledger.
 * Pointers into the middle of an object count. With TM_LEDGER_SCAN_STOP all threads stand still in a
 * signal handler while the image is made, so that their registers are in it; a thread that blocks that
 * signal is counted as missed. Objects of the current window are not judged.
 */
#ifndef TM_SCAN_H
#define TM_SCAN_H

#include "shim/base/ledger_format.h"

/*
 * Begins a pass for this request and returns; the image answers it. -errno: it could not begin.
 * A thread that holds its heap, or the helper.
 */
int tm_scan_begin(enum tm_ledger_control level, uint32_t seq);

/* Whether a pass is under way; picks up an image that has ended. */
bool tm_scan_is_busy(void);

/* In the forked child of the program: no pass is under way. */
void tm_scan_fork_child(void);

#endif
