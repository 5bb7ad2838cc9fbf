/* SPDX-License-Identifier: MIT */
/*
 * mappings: the text of /proc/PID/smaps, or what a process kept of its own (struct tm_ledger_sheet), as
 * records; and what a look into the memory of one that runs adds to them. See balance.c.
 */
#ifndef TM_TOOLS_MAPPINGS_H
#define TM_TOOLS_MAPPINGS_H

#include <stdio.h>
#include <sys/types.h>

#include "shim/base/attrs.h"

/* A part that is the library's own. */
struct tm_mapping_own {
	uint64_t begin, end, rss;
};

#define TM_MAPPING_OWNS 16u

struct tm_mapping {
	uint64_t begin, end, rss, huge, swap, offset;
	char perms[8];
	char path[512];
	bool no_reserve;           /* "nr" */
	bool io;                   /* "io" or "pf": a device's */
	uint64_t pools_rss, pools; /* bytes of CPython's pools, "Pymalloc:" */
	size_t owns;               /* "Own:" */
	struct tm_mapping_own own[TM_MAPPING_OWNS];
};

/* Closes the file, which may be NULL. False: there was nothing in it. */
bool tm_mappings_read(FILE *f, void (*see)(struct tm_mapping *m, void *arg), void *arg);

/* Bytes of [begin, end) that are there, by the page map; 0: nobody may look. */
uint64_t tm_mappings_resident(int pagemap, uint64_t begin, uint64_t end);

/* Looks for CPython's pools in the memory of a process. False: it may not be read. */
bool tm_mappings_look_for_pools(struct tm_mapping *m, pid_t pid, int pagemap);

#endif
