/* SPDX-License-Identifier: MIT */
/*
 * buddy: the amount of free memory in contiguous pieces of 2 MiB or more, from /proc/buddyinfo. If
 * there is little, a fault in memory advised with MADV_HUGEPAGE stalls in direct compaction.
 */
#ifndef TM_OS_BUDDY_H
#define TM_OS_BUDDY_H

#include <stdint.h>

/* Bytes in free pieces of at least 2 MiB, over all zones and nodes; UINT64_MAX: not readable. */
uint64_t tm_buddy_huge_bytes(void);

/* The same from the text of the file. */
uint64_t tm_buddy_parse(const char *text);

#endif
