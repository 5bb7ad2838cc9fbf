/* SPDX-License-Identifier: MIT */
/*
 * buddy: how much memory the kernel has in pieces of 2 MiB and more, from /proc/buddyinfo. Where there
 * is little, a fault in memory that was advised huge waits while the kernel compacts.
 */
#ifndef TM_OS_BUDDY_H
#define TM_OS_BUDDY_H

#include <stdint.h>

/* Bytes in free pieces of at least 2 MiB, in all zones and nodes; UINT64_MAX where that can't be read. */
uint64_t tm_buddy_huge_bytes(void);

/* The same from the file's text. */
uint64_t tm_buddy_parse(const char *text);

#endif
