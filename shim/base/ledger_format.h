/* SPDX-License-Identifier: MIT */
/*
 * ledger_format: the file in which a process keeps its account, as the library writes it and the
 * command reads it. Native byte order of a 64-bit little-endian machine. The file is sparse and has
 * its full length from the start; what was never written reads as zeros.
 *
 * Written in place by plain stores, so that it is whole at every instant: after kill -9 each thread
 * may have counted at most one object that has no entry yet. A reader of a running process sees each
 * word exactly, not all at one moment.
 */
#ifndef TM_BASE_LEDGER_FORMAT_H
#define TM_BASE_LEDGER_FORMAT_H

#include "shim/base/attrs.h"

#define TM_LEDGER_MAGIC UINT64_C(0x31524744454c4d54) /* "TMLEDGR1" */
#define TM_LEDGER_VERSION 1u

/* Areas of the file, bytes from its start. */
#define TM_LEDGER_MODULES_AT ((uint64_t)64 << 10) /* text: lines of /proc/PID/maps, files only */
#define TM_LEDGER_MODULES_BYTES ((uint64_t)512 << 10)
#define TM_LEDGER_ROWS_AT ((uint64_t)1 << 30) /* a stride for each heap: rows by number */
#define TM_LEDGER_ROWS_STRIDE ((uint64_t)128 << 10)
#define TM_LEDGER_HEAPS 8192u
#define TM_LEDGER_ROWS 4096u
#define TM_LEDGER_GRANULES_AT ((uint64_t)2 << 30) /* a record for each 64 KiB of the zone */
#define TM_LEDGER_GRANULES ((uint64_t)16 << 20)
#define TM_LEDGER_SIDES_AT ((uint64_t)4 << 30) /* side entries, by offset */
#define TM_LEDGER_SIDES_BYTES ((uint64_t)4 << 30)
#define TM_LEDGER_BYTES (TM_LEDGER_SIDES_AT + TM_LEDGER_SIDES_BYTES)

struct tm_ledger_header {
	uint64_t magic; /* written last */
	uint32_t version;
	uint32_t pid;
	uint64_t start_time; /* clock ticks since boot, as /proc/PID/stat has it */
	uint64_t zone_base;  /* address of granule 0 */
	uint64_t granules;   /* [atomic] records from here on were never written */
	uint64_t heaps;      /* [atomic] heaps that have rows */
	uint64_t begun_unix_s;
	uint64_t
		private_bytes; /* [atomic] side memory that could not be had in the file: not counted */
	uint32_t clean_exit;   /* 1: the process ended by itself */
	uint32_t module_bytes; /* [atomic] text in the modules area */
	char program[64];
};

enum tm_ledger_kind {
	TM_LEDGER_NOTHING,
	TM_LEDGER_SMALL,  /* a span with 3-byte entries */
	TM_LEDGER_MEDIUM, /* a span with 8-byte entries */
	TM_LEDGER_BLOCK,  /* whole pages */
};

/* What begins in a granule. */
struct tm_ledger_granule {
	uint8_t kind; /* enum tm_ledger_kind; written last when it begins, first when it ends */
	uint8_t unused;
	uint16_t heap;         /* whose rows the ids belong to */
	uint32_t slot_bytes;   /* spans */
	uint16_t slots, first; /* spans: slots from `first` on were ever handed out */
	uint16_t id;           /* blocks: row * 16 */
	uint16_t unused2;
	uint64_t at; /* spans: offset in the sides area; blocks: requested bytes */
};
_Static_assert(sizeof(struct tm_ledger_granule) == 24, "layout");

/* A row: what one call site did in one heap. */
struct tm_ledger_row {
	uint64_t key; /* 0: unused */
	uint64_t objects;
	uint64_t bytes;
	uint64_t site : 48;
	uint64_t height : 16;
};
_Static_assert(sizeof(struct tm_ledger_row) == 32, "layout");

#define TM_LEDGER_ID_FREE 0xffffu

#endif
