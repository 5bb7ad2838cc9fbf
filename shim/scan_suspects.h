/* SPDX-License-Identifier: MIT */
/*
 * scan_suspects: what scans learn of sites whose unreachable objects are freed later: their pointers are
 * hidden (struct tm_ledger_suspect). In the image of a scan; the table lies in the ledger. In each pass:
 * begin, stays for what was unreachable before and still lives, learn, suspect for what is now.
 */
#ifndef TM_SCAN_SUSPECTS_H
#define TM_SCAN_SUSPECTS_H

#include "shim/base/attrs.h"

struct tm_row;

void tm_scan_suspects_begin(void);
void tm_scan_suspect_stays(const struct tm_row *row);
void tm_scan_suspects_learn(void);

/* Counts it. True: the site hides its pointers, the object is not to be judged. */
bool tm_scan_suspect(const struct tm_row *row);

#endif
