/* SPDX-License-Identifier: MIT */
/* control: requests fresh figures or a leak scan from a running process, through its ledger. */
#ifndef TM_TOOLS_CONTROL_H
#define TM_TOOLS_CONTROL_H

#include "shim/base/attrs.h"

enum tm_control_answer { TM_CONTROL_NOT_ASKED, TM_CONTROL_SCANNED };

/*
 * To be called before the ledger at "path" is read. If its process runs, has it update its counters
 * and maps and, with "scan", search its memory for pointers, twice. A process that does not answer
 * in time, or that we may not ask, is read as it is. Prints nothing, except that it waits. Returns
 * enum tm_control_answer, or -errno: why the wanted scans were not made.
 */
int tm_control_prepare(const char *path, bool scan);

#endif
