/* SPDX-License-Identifier: MIT */
/*
 * report: the report that the process prints itself (TIERMALLOC_REPORT), and the figures in it.
 *
 * Formatted on the stack and written by raw write(2): no allocation, no stdio, so malloc may be
 * used before and after. At most one report per process image, none by a vfork child. Any thread;
 * not callable from signal handlers.
 */
#ifndef TM_REPORT_H
#define TM_REPORT_H

#include "shim/base/attrs.h"
#include "shim/base/tunables.h"
#include "shim/heap/huge.h"

#define TM_SNAPSHOT_PARTS 8u

/* One part of the heap. */
struct tm_snapshot_part {
	const char *name;      /* NULL: no such part */
	uint64_t live_bytes;   /* requested and not freed */
	uint64_t slot_bytes;   /* occupied by those blocks, as slots or pages */
	uint64_t cached_bytes; /* free but still resident */
	uint64_t mapped_bytes; /* mapped from the kernel */
	uint64_t blocks;       /* live */
};

/* By tier; index 0: total. mapped_bytes and cached_bytes of slots count for the session tier. */
struct tm_snapshot_tier {
	uint64_t live_bytes, slot_bytes, cached_bytes, mapped_bytes, blocks;
	uint64_t peak_bytes;                 /* largest sum of large blocks and spans */
	uint64_t refused;                    /* requests refused by the tier's ceiling */
	uint64_t stand_bytes[TM_HUGE_STEPS]; /* mapped, by kind of page: heap/huge.h */
};

/* The engine's figures of the whole process at one moment. */
struct tm_snapshot {
	uint64_t live_bytes;
	uint64_t slot_bytes;
	uint64_t cached_bytes;
	uint64_t mapped_bytes;
	uint64_t meta_bytes;      /* the engine's metadata */
	uint64_t blocks;          /* live */
	uint64_t peak_live_bytes; /* highest live_bytes (slot_bytes if not counted) */
	uint64_t mapped_peak_bytes;
	uint64_t large_bytes; /* of slot_bytes: blocks above 64 KiB, for mallinfo's hblkhd */
	uint64_t large_blocks;
	uint64_t zone_start; /* all blocks lie in [zone_start, zone_end) */
	uint64_t zone_end;
	struct tm_snapshot_part part[TM_SNAPSHOT_PARTS];
	struct tm_snapshot_tier tier[TM_TIER_COUNT];
};

/*
 * Supplied by the engine. Takes its locks one at a time, allocates nothing. 0 or -errno; -EDEADLK
 * if the caller is a signal handler that interrupted the engine: it might wait for a lock that its
 * own thread holds.
 */
int tm_account_snapshot(struct tm_snapshot *ret_snapshot);

/*
 * The same for callers outside the engine: blocks signals meanwhile, because a handler that calls
 * exit would re-enter (H19).
 */
int tm_report_snapshot(struct tm_snapshot *ret_snapshot);

/* Writes the report's tables and counters to a descriptor. 0 or -errno. */
int tm_report_write(int fd);

/* Writes the report that TIERMALLOC_REPORT requests, at process end; only the first call does. */
void tm_report_at_exit(void);

/* When main returns or exit is called: takes the figures that the report shows for that moment. */
void tm_report_main_ended(void);

/*
 * Expands a file name pattern: %p process id, %h host name, %t seconds since 1970, %% a percent
 * sign. False: too long for buf.
 */
bool tm_report_expand(const char *pattern, char *buf, size_t size);

#endif
