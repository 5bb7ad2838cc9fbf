/* SPDX-License-Identifier: MIT */
/*
 * scan_memory: reads memory that the image of a scan may lack. Pages with MADV_DONTFORK (registered
 * for RDMA) are missing in the image and others are protected; an access would kill it. Missing
 * pages are read from the parent (process_vm_readv), if the kernel's ptrace rules permit it. Only
 * for the image of a scan.
 */
#ifndef TM_SCAN_MEMORY_H
#define TM_SCAN_MEMORY_H

#include "shim/base/attrs.h"

/*
 * To be called first. room: TM_SCAN_ROOM_BYTES mapped before the fork (scan_image.h). 0 or -errno.
 */
int tm_scan_memory_begin(char *room);

enum tm_scan_memory {
	TM_SCAN_ZONE,    /* in the zone: the image's pages, or the parent's if they are missing */
	TM_SCAN_PARENTS, /* elsewhere: only pages that the image lacks */
};

/* Calls `see` with each word of [start, end). Returns the bytes that could not be read. */
uint64_t tm_scan_memory_look(enum tm_scan_memory which, uintptr_t start, uintptr_t end,
			     void (*see)(uintptr_t word));

/* Calls `see` with each aligned word of [from, to), which must be readable. */
TM_INLINE void tm_scan_memory_words(uintptr_t from, uintptr_t to, void (*see)(uintptr_t word))
{
	from = (from + 7) & ~(uintptr_t)7;
	for (; from + 8 <= to; from += 8)
		see(*(const uintptr_t *)from);
}

#endif
