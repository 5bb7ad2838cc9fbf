/* SPDX-License-Identifier: MIT */
/*
 * unwind_pages: evicts pages of frame information after they were read. The first walk through a
 * program counter reads a few places of a table of megabytes, and the kernel maps 64 KiB around
 * each (fault-around): for 2,000 sites of a compiler 7 MiB would stay resident that nothing else
 * reads.
 *
 * Evicts only pages that belong to the file, as /proc/self/pagemap tells; private pages (code moved
 * to huge pages by the program) are never touched. Any thread, any signal handler; no lock, no
 * allocation.
 */
#ifndef TM_UNWIND_PAGES_H
#define TM_UNWIND_PAGES_H

#include "shim/base/attrs.h"

#define TM_UNWIND_PAGES_ROOM 256u

/*
 * Notes that `entry` of the object with this sorted index was read; now and then evicts the range
 * from the lowest to the highest entry read.
 */
void tm_unwind_pages_read(uintptr_t index, uintptr_t entry, uint64_t room[TM_UNWIND_PAGES_ROOM]);

/* Whether all resident pages of the range belong to the file. False if the kernel doesn't tell. */
bool tm_unwind_pages_are_clean(uintptr_t begin, uintptr_t end, uint64_t room[TM_UNWIND_PAGES_ROOM]);

#endif
