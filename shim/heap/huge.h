/* SPDX-License-Identifier: MIT */
/*
 * huge: chooses page sizes, and records for each unit of 2 MiB which pages it is on and why. New
 * memory of the persistent tier comes from hugetlb pools if that was asked for. Otherwise it gets
 * MADV_HUGEPAGE before its first touch if its part is full enough (dense.h), and else stays on
 * small pages.
 *
 * Where the kernel has few free pieces of 2 MiB, a page fault in advised memory waits for
 * compaction (others measured programs 5 times slower). Then new memory stays on small pages;
 * tm_huge_tick advises it once the kernel has room again, and collapse.c collapses what was written
 * meanwhile.
 *
 * Functions are called under the lock of the part whose memory it is, unless said otherwise.
 * Counters are relaxed.
 */
#ifndef TM_HEAP_HUGE_H
#define TM_HEAP_HUGE_H

#include <stdatomic.h>

#include "shim/base/tunables.h"
#include "shim/heap/zone.h"

/* The pages that a unit of 2 MiB is on, and why on no larger ones. */
enum tm_huge_step {
	TM_HUGE_UNMAPPED,   /* nothing is mapped */
	TM_HUGE_ON_1G,      /* hugetlb pages of 1 GiB */
	TM_HUGE_ON_2M,      /* hugetlb pages of 2 MiB */
	TM_HUGE_ON_THP,     /* MADV_HUGEPAGE was given */
	TM_HUGE_POOL_EMPTY, /* hugetlb was asked for and refused */
	TM_HUGE_SYSTEM_OFF, /* the system gives no transparent huge pages */
	TM_HUGE_USER_OFF,   /* TIERMALLOC_HUGE=never */
	TM_HUGE_SPARSE,     /* not known to be written all over */
	TM_HUGE_SCARCE,     /* the kernel has few free pieces of 2 MiB */
	TM_HUGE_DENIED,     /* madvise failed */
	TM_HUGE_STEPS
};

struct tm_huge_state {
	/* units that the hugetlb pools could not serve, over all time */
	_Atomic uint64_t pool_empty;
	_Atomic uint64_t denied;  /* units for which madvise failed, over all time */
	_Atomic uint64_t advised; /* units of blocks that are advised at present */
	/* [const after boot] the mode was set by the user, not by the system */
	bool by_user;
};
extern TM_HIDDEN struct tm_huge_state tm_huge;

/* Tests put a fake kernel here. */
struct tm_huge_os {
	uint64_t (*free_bytes)(void);
	uint64_t (*now_ms)(void);
};
extern TM_HIDDEN struct tm_huge_os tm_huge_os;

const char *tm_huge_step_name(enum tm_huge_step step);

/* Record what these units are on now. */
void tm_huge_stand(uint32_t unit, size_t units, enum tm_huge_step step);

/* Why no memory may be advised in this process; TM_HUGE_ON_THP: it may be. Any thread, no lock. */
enum tm_huge_step tm_huge_allowed(void);

/* Bytes of a part by the pages they are on. Takes no lock; approximate. */
void tm_huge_stats(enum tm_part part, uint64_t ret_bytes[TM_HUGE_STEPS]);

/* Give MADV_HUGEPAGE to whole units of one part that don't have it. */
void tm_huge_advise(uint32_t page, size_t units);

/* Give MADV_NOHUGEPAGE to whole units of one part. */
void tm_huge_decline(uint32_t page, size_t units);

/* New untouched memory of a part: choose its pages. part_bytes: the part's size with it. */
void tm_huge_fresh(enum tm_part part, uint32_t page, size_t bytes, size_t part_bytes);

/* True: some memory was left on small pages to be advised later, by tm_huge_tick. */
bool tm_huge_is_owed(enum tm_part part);

/* [part lock] For the helper: advise such memory if the kernel has room now. */
void tm_huge_tick(enum tm_part part);

/* Tests only. */
void tm_huge_clear(void);

#endif
