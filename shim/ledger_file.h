/* SPDX-License-Identifier: MIT */
/*
 * ledger_file: the directory of ledgers and the file in it: who may make one, how large all of them
 * may be together, what is written about the process. System calls only; called while a ledger begins.
 */
#ifndef TM_LEDGER_FILE_H
#define TM_LEDGER_FILE_H

#include "shim/base/ledger_format.h"

struct tm_ledger_file {
	char path[512];
	uint32_t pid;
	uint64_t start_time;
	uint64_t limit_bytes; /* what it may occupy */
	const char *why;      /* there is none, where an errno says too little; else NULL */
};

/* The user's directory, where none was named. */
void tm_ledger_file_default(char *directory, size_t size);

enum tm_ledger_room {
	TM_LEDGER_ROOM_ASKED, /* the user wants it: up to a quarter of the file system */
	TM_LEDGER_ROOM_SHARED, /* all ledgers there share 256 MiB; those of the dead go, oldest first */
};

/* A new sparse file of the full length: its descriptor, or -errno. path is set in any case. */
int tm_ledger_file_create(struct tm_ledger_file *file, const char *directory,
			  enum tm_ledger_room room);

/* The constant part of the header. */
void tm_ledger_file_describe(struct tm_ledger_header *header, const struct tm_ledger_file *file);

#endif
