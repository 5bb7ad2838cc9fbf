/* SPDX-License-Identifier: MIT */
/* control: asks a running process for fresh figures or for a leak scan, through its ledger. */
#ifndef TM_TOOLS_CONTROL_H
#define TM_TOOLS_CONTROL_H

#include "shim/base/attrs.h"

enum tm_control_answer { TM_CONTROL_NOT_ASKED, TM_CONTROL_SCANNED };

/*
 * Before the ledger of "path" is read: of a process that runs, counters and maps are brought up to
 * date, and with "scan" its memory is searched for pointers, twice. A process that does not answer in
 * time, or that may not be asked, is read as it is. Says nothing but that it waits. Returns whether scans
 * were made, or -errno: they were wanted, and why there are none.
 */
int tm_control_prepare(const char *path, bool scan);

#endif
