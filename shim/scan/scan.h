/* SPDX-License-Identifier: MIT */
/*
 * scan: leak scan: finds unreachable objects in a running process, without ptrace.
 *
 * The process forks an image of itself (raw clone: no atfork handler runs, no SIGCHLD is sent). The
 * image marks all objects reachable from the roots, which are all writable private memory outside
 * the allocator (stacks, data segments, thread-local storage, other allocators' pages), and sets
 * verdict bits in the ledger for the others. Interior pointers count. With TM_LEDGER_SCAN_STOP all
 * threads wait in a signal handler while the image is made, so that it contains their registers; a
 * thread that blocks the signal is counted as missed. Objects born in the current window are not
 * judged.
 */
#ifndef TM_SCAN_H
#define TM_SCAN_H

#include "shim/base/ledger_format.h"

/*
 * Starts a pass for the request `seq` and returns; the image writes the answer. 0 or -errno: not
 * started. Called by a thread that holds its heap, or by the helper.
 */
int tm_scan_begin(enum tm_ledger_control level, uint32_t seq);

/* Whether a pass is running; reaps an image that has exited. */
bool tm_scan_is_busy(void);

/* In a forked child of the program: forgets the parent's pass. */
void tm_scan_fork_child(void);

#endif
