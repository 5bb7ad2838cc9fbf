/* SPDX-License-Identifier: MIT */
/*
 * ledger: reads a ledger (shim/base/ledger_format.h), of a process that runs or is gone. Nothing in
 * the file is trusted: offsets and counts are checked against what the file can hold, so that a
 * damaged one costs rows, not the command.
 */
#ifndef TM_TOOLS_LEDGER_H
#define TM_TOOLS_LEDGER_H

#include <stdio.h>

#include "shim/base/ledger_format.h"

/* What one call site holds; heaps of all threads together. */
struct tm_ledger_site {
	uint64_t address; /* return address; 0: sites beyond the table, or inherited by a fork */
	uint32_t height;  /* of the stack, in 16 bytes; 0: not told apart */
	uint64_t live_objects;
	uint64_t live_bytes; /* requested */
	uint64_t slot_bytes; /* what those occupy */
	uint64_t objects;    /* ever allocated */
	uint64_t bytes;
};

struct tm_ledger {
	const char *path;
	const unsigned char *map; /* owned */
	size_t map_bytes;
	struct tm_ledger_header header;
	struct tm_ledger_site *sites; /* owned; largest live bytes first */
	size_t site_count;
	struct tm_ledger_site total;
	uint64_t torn; /* records that make no sense */
};

/* 0; or -1 after one line on standard error that names the file and what is wrong. */
int tm_ledger_open(struct tm_ledger *ledger, const char *path);
void tm_ledger_close(struct tm_ledger *ledger);

/* "libfoo.so+0x1234" of an address, by the modules the file lists. */
void tm_ledger_name(const struct tm_ledger *ledger, uint64_t address, char *buf, size_t size);

/* "running", "clean" or "killed". */
const char *tm_ledger_ended(const struct tm_ledger *ledger);

#endif
