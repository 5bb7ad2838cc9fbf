/* SPDX-License-Identifier: MIT */
/*
 * huge: the ladder of page sizes, and the account of why a unit of 2 MiB stands where it does. New
 * memory of the persistent tier comes from the hugetlb pools where that was asked for, else gets
 * MADV_HUGEPAGE before its first touch where its part is full enough (dense.h), else stays plain.
 *
 * Guard: where the kernel has few free pieces of 2 MiB, a fault in advised memory waits for compaction
 * (others measured 5 times slower programs). Then new memory stays plain, and tm_huge_tick advises it
 * once there is room again, and collapse.c collapses what was written meanwhile.
 *
 * Under the lock of the part whose memory it is. Counters are relaxed.
 */
#ifndef TM_HEAP_HUGE_H
#define TM_HEAP_HUGE_H

#include <stdatomic.h>

#include "shim/base/tunables.h"
#include "shim/heap/zone.h"

/* On which pages a unit of 2 MiB stands, and why on no larger ones. */
enum tm_huge_step {
	TM_HUGE_UNMAPPED,   /* nothing is mapped */
	TM_HUGE_ON_1G,      /* hugetlb pages of 1 GiB */
	TM_HUGE_ON_2M,      /* hugetlb pages of 2 MiB */
	TM_HUGE_ON_THP,     /* advised */
	TM_HUGE_POOL_EMPTY, /* hugetlb was asked for and refused */
	TM_HUGE_SYSTEM_OFF, /* the system gives no transparent huge pages */
	TM_HUGE_USER_OFF,   /* TIERMALLOC_HUGE=never */
	TM_HUGE_SPARSE,     /* not known to be written all over */
	TM_HUGE_SCARCE,     /* the kernel has few free pieces of 2 MiB */
	TM_HUGE_DENIED,     /* madvise failed */
	TM_HUGE_STEPS
};

struct tm_huge_state {
	_Atomic uint64_t pool_empty; /* units that the hugetlb pools did not have, ever */
	_Atomic uint64_t denied;     /* units of which madvise was refused, ever */
	_Atomic uint64_t advised;    /* units of blocks that are advised now */
	bool by_user; /* [const after boot] the mode is the user's, not the system's */
};
extern TM_HIDDEN struct tm_huge_state tm_huge;

/* Tests put another kernel here. */
struct tm_huge_os {
	uint64_t (*free_bytes)(void);
	uint64_t (*now_ms)(void);
};
extern TM_HIDDEN struct tm_huge_os tm_huge_os;

const char *tm_huge_step_name(enum tm_huge_step step);

/* Units are mapped, or not any more. */
void tm_huge_stand(uint32_t unit, size_t units, enum tm_huge_step step);

/* Why nothing is advised here; TM_HUGE_ON_THP: it may be. */
enum tm_huge_step tm_huge_allowed(void);

/* Bytes of a part by where they stand; no lock, approximate. */
void tm_huge_stats(enum tm_part part, uint64_t ret_bytes[TM_HUGE_STEPS]);

/* Ask for transparent huge pages in whole units of one part. */
void tm_huge_advise(uint32_t page, size_t units);

/* Take that back. */
void tm_huge_decline(uint32_t page, size_t units);

/* New memory of a part, of which nothing was touched; part_bytes: what it has then. */
void tm_huge_fresh(enum tm_part part, uint32_t page, size_t bytes, size_t part_bytes);

/* Whether memory was left plain that shall be advised later: then tm_huge_tick has work. */
bool tm_huge_is_owed(enum tm_part part);

/* [part lock] From a helper: advise what was left plain, where there is room now. */
void tm_huge_tick(enum tm_part part);

/* Tests only. */
void tm_huge_clear(void);

#endif
