/* SPDX-License-Identifier: MIT */
/*
 * ledger_file: creates the ledger's file: checks the directory, enforces the limit on the size of
 * all ledgers in it, writes the description of the process. Makes system calls only; called while a
 * ledger begins.
 */
#ifndef TM_LEDGER_FILE_H
#define TM_LEDGER_FILE_H

#include "shim/base/ledger_format.h"

struct tm_ledger_file {
	char path[512];
	uint32_t pid;
	uint64_t start_time;
	uint64_t limit_bytes; /* disk space that it may occupy */
	const char *why;      /* reason of a failure that an errno doesn't explain; else NULL */
};

/* The default directory of this user. */
void tm_ledger_file_default(char *directory, size_t size);

enum tm_ledger_room {
	TM_LEDGER_ROOM_ASKED, /* requested by the user: up to a quarter of the file system */
	/* all ledgers there share 256 MiB; those of dead processes are deleted, oldest first */
	TM_LEDGER_ROOM_SHARED,
};

/*
 * Creates a sparse file of full length. Its descriptor, or -errno. Sets file->path in both cases.
 */
int tm_ledger_file_create(struct tm_ledger_file *file, const char *directory,
			  enum tm_ledger_room room);

/* Fills the constant part of the header. */
void tm_ledger_file_describe(struct tm_ledger_header *header, const struct tm_ledger_file *file);

#endif
