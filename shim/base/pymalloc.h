/* SPDX-License-Identifier: MIT */
/*
 * pymalloc: finds the memory held by CPython's small-object allocator, by the headers of its pools
 * (Objects/obmalloc.c, struct pool_header, the same from 3.5 to 3.13). Pools are 4 KiB up to 3.9
 * and 16 KiB since, in arenas that CPython maps itself. Needs no symbol of the interpreter. False
 * matches are practically excluded: six words of a header must agree with each other and with its
 * address.
 */
#ifndef TM_BASE_PYMALLOC_H
#define TM_BASE_PYMALLOC_H

#include "shim/base/attrs.h"

/* struct pool_header as laid out in memory. */
struct tm_pymalloc_header {
	uint64_t count; /* objects in use, in the low 32 bits */
	uint64_t free;  /* address of the pool's first free object, or 0 */
	uint64_t next, previous;
	uint32_t arena, size_class;
	uint32_t next_offset, last_offset;
};
_Static_assert(sizeof(struct tm_pymalloc_header) == 48, "layout");

/* Size of the pool whose header h was read from address `at`; 0: not a pool header. */
size_t tm_pymalloc_pool(const struct tm_pymalloc_header *h, uint64_t at);

#define TM_PYMALLOC_PAGES 1024u

struct tm_pymalloc_room {
	uint8_t resident[TM_PYMALLOC_PAGES]; /* bit 0: the page is resident */
	uint64_t at[TM_PYMALLOC_PAGES];
	struct tm_pymalloc_header header[TM_PYMALLOC_PAGES];
};

/* Access to a process's memory. */
struct tm_pymalloc_source {
	/*
	 * Tells which of the `pages` pages from `at` on (at most TM_PYMALLOC_PAGES) are resident.
	 * False: unknown.
	 */
	bool (*look)(uint64_t at, size_t pages, uint8_t *ret_resident, void *arg);
	/* Reads the headers at these addresses; zeros for one that can't be read. */
	void (*read)(const uint64_t *at, size_t count, struct tm_pymalloc_header *ret, void *arg);
	void *arg;
	struct tm_pymalloc_room *room;
};

struct tm_pymalloc_sum {
	uint64_t pools_bytes;    /* pools that were ever used */
	uint64_t resident_bytes; /* of pools_bytes */
};

/*
 * Adds the pools in the anonymous mapping [begin, end) to *sum. Reads no page that isn't resident.
 */
void tm_pymalloc_look(const struct tm_pymalloc_source *source, uint64_t begin, uint64_t end,
		      struct tm_pymalloc_sum *sum);

#endif
