/* SPDX-License-Identifier: MIT */
/*
 * scan_memory: reading what an image of the process may not have. Pages that the program keeps from its
 * children (MADV_DONTFORK: registered for a network card) are missing in it, others are protected, and an
 * access would end it. What is missing is read from the parent, where the kernel's rules for tracing allow
 * that. In the image of a scan only.
 */
#ifndef TM_SCAN_MEMORY_H
#define TM_SCAN_MEMORY_H

#include "shim/base/attrs.h"

/* First of all; room: TM_SCAN_ROOM_BYTES, mapped before the fork (see scan_image.h). 0 or -errno. */
int tm_scan_memory_begin(char *room);

enum tm_scan_memory {
	TM_SCAN_ZONE,    /* of the zone: the image's pages, where it has none the parent's */
	TM_SCAN_PARENTS, /* elsewhere: only what the image has not */
};

/* Shows each word. Returns the bytes that nobody could read. */
uint64_t tm_scan_memory_look(enum tm_scan_memory which, uintptr_t start, uintptr_t end,
			     void (*see)(uintptr_t word));

/* Words of readable memory. */
TM_INLINE void tm_scan_memory_words(uintptr_t from, uintptr_t to, void (*see)(uintptr_t word))
{
	from = (from + 7) & ~(uintptr_t)7;
	for (; from + 8 <= to; from += 8)
		see(*(const uintptr_t *)from);
}

#endif
