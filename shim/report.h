/* SPDX-License-Identifier: MIT */
/*
 * report: what the process itself prints (TIERMALLOC_REPORT), and the figures it is made of.
 *
 * Written by raw write(2) from the stack: no allocation, no stdio, malloc stays usable before and
 * after. Once per process image; never by a vfork child; any thread, not for signal handlers.
 */
#ifndef TM_REPORT_H
#define TM_REPORT_H

#include "shim/base/attrs.h"
#include "shim/base/tunables.h"
#include "shim/heap/huge.h"

#define TM_SNAPSHOT_PARTS 8u

/* One part of the heap. Bytes. */
struct tm_snapshot_part {
	const char *name;      /* NULL: no such part */
	uint64_t live_bytes;   /* asked for by the program and not freed */
	uint64_t slot_bytes;   /* the same as slots and pages: what those blocks occupy */
	uint64_t cached_bytes; /* free, but still backed by the kernel's pages */
	uint64_t mapped_bytes; /* obtained from the kernel */
	uint64_t blocks;       /* live ones */
};

/* Index by tier; 0: all. mapped_bytes and cached_bytes of slots count as the session's. */
struct tm_snapshot_tier {
	uint64_t live_bytes, slot_bytes, cached_bytes, mapped_bytes, blocks;
	uint64_t peak_bytes;                 /* largest sum of requested blocks and spans */
	uint64_t refused;                    /* requests beyond the ceiling */
	uint64_t stand_bytes[TM_HUGE_STEPS]; /* mapped, by the pages it is on: heap/huge.h */
};

/* The whole process at one moment, as far as the engine knows it. */
struct tm_snapshot {
	uint64_t live_bytes;
	uint64_t slot_bytes;
	uint64_t cached_bytes;
	uint64_t mapped_bytes;
	uint64_t meta_bytes; /* the engine's own tables */
	uint64_t blocks;     /* live ones */
	uint64_t
		peak_live_bytes; /* highest live_bytes (or slot_bytes where requests are not counted) */
	uint64_t mapped_peak_bytes;
	uint64_t large_bytes; /* of slot_bytes: blocks above 64 KiB, for mallinfo's hblkhd */
	uint64_t large_blocks;
	uint64_t zone_start; /* addresses [start, end) of everything handed out */
	uint64_t zone_end;
	struct tm_snapshot_part part[TM_SNAPSHOT_PARTS];
	struct tm_snapshot_tier tier[TM_TIER_COUNT];
};

/*
 * Supplied by the engine; takes its locks one at a time, allocates nothing. 0 or -errno; -EDEADLK where
 * the caller, a signal handler, interrupted the engine and might wait for its own thread's lock.
 */
int tm_account_snapshot(struct tm_snapshot *ret_snapshot);

/*
 * The same from anywhere in the program. Signals are blocked meanwhile: a handler that calls exit
 * would come back here (H19).
 */
int tm_report_snapshot(struct tm_snapshot *ret_snapshot);

/* The table and the counters to a descriptor. 0 or -errno. */
int tm_report_write(int fd);

/* What TIERMALLOC_REPORT asks for at the end of the process; does it once. */
void tm_report_at_exit(void);

/* main returned or exit was called: figures of this moment go into the report too. */
void tm_report_main_ended(void);

/* A file name out of a pattern: %p process, %h host, %t seconds since 1970, %% itself. False: too long. */
bool tm_report_expand(const char *pattern, char *buf, size_t size);

#endif
