/* SPDX-License-Identifier: MIT */
/* scan_image: the part of a leak scan that runs in the forked image; see scan.h. */
#ifndef TM_SCAN_IMAGE_H
#define TM_SCAN_IMAGE_H

#include "shim/base/ledger_format.h"

#define TM_SCAN_THREADS 1024u

struct tm_scan_thread {
	uintptr_t sp; /* stack pointer; 0: unknown */
};

#define TM_SCAN_ROOM_BYTES ((size_t)192 << 10)

struct tm_scan_order {
	struct tm_scan_thread thread[TM_SCAN_THREADS];
	uint32_t threads;
	uint32_t seq;
	uint32_t level;
	uintptr_t own_sp;
	uintptr_t helper, helper_end; /* the helper's memory, not to be used as a root */
	/*
	 * Work space, mapped before the fork. A mapping made by the image could land where the
	 * parent has pages that the image did not inherit, and hide that they are missing.
	 */
	char *room; /* TM_SCAN_ROOM_BYTES */
};

/* Scans, writes the verdicts and the answer to the ledger. Only in the image. 0 or -errno. */
int tm_scan_image(const struct tm_scan_order *order);

#endif
