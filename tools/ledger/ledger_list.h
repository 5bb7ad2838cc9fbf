/* SPDX-License-Identifier: MIT */
/* ledger_list: lists the ledgers in a folder. */
#ifndef TM_TOOLS_LEDGER_LIST_H
#define TM_TOOLS_LEDGER_LIST_H

#include <stdio.h>

#include "shim/base/attrs.h"

struct tm_ledger_entry {
	char *path;       /* owned */
	const char *name; /* in path: "PID-STARTTIME.tm" */
	uint64_t pid;
	uint64_t bytes;      /* bytes allocated on disk */
	uint64_t changed_ns; /* Unix time of its last change */
};

struct tm_ledger_list {
	struct tm_ledger_entry *at;
	size_t count;
};

/* Folder of ledgers: TIERMALLOC_DIR, or the library's default. */
void tm_ledger_folder(char *buf, size_t size);

/*
 * All files of a folder that are named like ledgers, by process id and name; their contents are not
 * read. Returns 0 or -errno; a missing folder gives an empty list.
 */
int tm_ledger_list_read(struct tm_ledger_list *list, const char *folder);
void tm_ledger_list_clear(struct tm_ledger_list *list);

#endif
