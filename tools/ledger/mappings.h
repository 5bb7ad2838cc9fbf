/* SPDX-License-Identifier: MIT */
/*
 * mappings: parses /proc/PID/smaps, or what a process stored of its own (struct tm_ledger_sheet),
 * into records, and adds what the memory of a running process shows. See balance.c.
 */
#ifndef TM_TOOLS_MAPPINGS_H
#define TM_TOOLS_MAPPINGS_H

#include <stdio.h>
#include <sys/types.h>

#include "shim/base/attrs.h"

/* Part of a mapping that belongs to the library. */
struct tm_mapping_own {
	uint64_t begin, end, rss;
};

#define TM_MAPPING_OWNS 16u

struct tm_mapping {
	uint64_t begin, end, rss, huge, swap, offset;
	char perms[8];
	char path[512];
	bool no_reserve;           /* "nr" */
	bool io;                   /* "io" or "pf": device memory */
	uint64_t pools_rss, pools; /* bytes of CPython's pools, "Pymalloc:" */
	size_t owns;               /* "Own:" */
	struct tm_mapping_own own[TM_MAPPING_OWNS];
};

/* Calls `see` for each mapping. Closes the file, which may be NULL. False: it was empty. */
bool tm_mappings_read(FILE *f, void (*see)(struct tm_mapping *m, void *arg), void *arg);

/* Resident bytes of [begin, end) according to the page map; 0 if it may not be read. */
uint64_t tm_mappings_resident(int pagemap, uint64_t begin, uint64_t end);

/* Searches a process's memory for CPython's pools. False: it may not be read. */
bool tm_mappings_look_for_pools(struct tm_mapping *m, pid_t pid, int pagemap);

#endif
