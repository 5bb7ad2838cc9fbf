/* SPDX-License-Identifier: MIT */
/* ledger_list: which ledgers there are. */
#ifndef TM_TOOLS_LEDGER_LIST_H
#define TM_TOOLS_LEDGER_LIST_H

#include <stdio.h>

#include "shim/base/attrs.h"

struct tm_ledger_entry {
	char *path;       /* owned */
	const char *name; /* in path: "PID-STARTTIME.tm" */
	uint64_t pid;
	uint64_t bytes;      /* that it occupies */
	uint64_t changed_ns; /* Unix time of its last change */
};

struct tm_ledger_list {
	struct tm_ledger_entry *at;
	size_t count;
};

/* TIERMALLOC_DIR, or where the library puts ledgers without it. */
void tm_ledger_folder(char *buf, size_t size);

/*
 * All files of a folder that are named like ledgers, by process id and name; the files are not read.
 * 0 or -errno; a folder that is not there is an empty list.
 */
int tm_ledger_list_read(struct tm_ledger_list *list, const char *folder);
void tm_ledger_list_clear(struct tm_ledger_list *list);

#endif
