/* SPDX-License-Identifier: MIT */
/*
 * unwind_pages: pages of frame information go again when they were read. A walk's first look at a program
 * counter reads a few places of a table of megabytes, and the kernel maps 64 KiB around each: a compiler's
 * 2,000 sites would keep 7 MiB of it resident that nobody else reads.
 *
 * Only pages that are their file's, as the kernel tells of each: what a program has put there itself (code
 * moved to huge pages) is never touched. Any thread, any signal handler; no lock, no allocation.
 */
#ifndef TM_UNWIND_PAGES_H
#define TM_UNWIND_PAGES_H

#include "shim/base/attrs.h"

#define TM_UNWIND_PAGES_ROOM 256u

/* An entry of the object with this sorted index was read; what lies between entries is theirs too. */
void tm_unwind_pages_read(uintptr_t index, uintptr_t entry, uint64_t room[TM_UNWIND_PAGES_ROOM]);

/* Whether all pages of the range that are there are their file's. False where the kernel doesn't tell. */
bool tm_unwind_pages_are_clean(uintptr_t begin, uintptr_t end, uint64_t room[TM_UNWIND_PAGES_ROOM]);

#endif
