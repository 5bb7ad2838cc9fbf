/* SPDX-License-Identifier: MIT */
/*
 * scan_suspects: recognises sites whose objects look unreachable but are freed later: the program
 * stores their pointers in a hidden form (struct tm_ledger_suspect). Only in the image of a scan;
 * the table lies in the ledger. Order of calls in each pass: _begin; _stays for each object that
 * was unreachable in the previous pass and is still live; _learn; tm_scan_suspect for each object
 * that is unreachable now.
 */
#ifndef TM_SCAN_SUSPECTS_H
#define TM_SCAN_SUSPECTS_H

#include "shim/base/attrs.h"

struct tm_row;

void tm_scan_suspects_begin(void);
void tm_scan_suspect_stays(const struct tm_row *row);
void tm_scan_suspects_learn(void);

/*
 * Counts an unreachable object of the row's site. True: the site hides pointers, don't report it.
 */
bool tm_scan_suspect(const struct tm_row *row);

#endif
