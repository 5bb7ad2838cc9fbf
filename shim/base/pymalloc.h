/* SPDX-License-Identifier: MIT */
/*
 * pymalloc: memory that CPython's allocator of small objects holds, told by the headers of its pools
 * (Objects/obmalloc.c, struct pool_header; 3.5 to 3.13 have the same): 4 KiB each up to 3.9, 16 KiB
 * since, in arenas that it maps itself. Nothing of the interpreter's need be found for it, and a header
 * cannot be met by chance: six words of it are bound to each other and to its address.
 */
#ifndef TM_BASE_PYMALLOC_H
#define TM_BASE_PYMALLOC_H

#include "shim/base/attrs.h"

/* As it lies in memory. */
struct tm_pymalloc_header {
	uint64_t count; /* objects in use, the low half */
	uint64_t free;  /* address of the first free one in the pool, or 0 */
	uint64_t next, previous;
	uint32_t arena, size_class;
	uint32_t next_offset, last_offset;
};
_Static_assert(sizeof(struct tm_pymalloc_header) == 48, "layout");

/* Bytes of the pool that has this header at an address; 0: it is none. */
size_t tm_pymalloc_pool(const struct tm_pymalloc_header *h, uint64_t at);

#define TM_PYMALLOC_PAGES 1024u

struct tm_pymalloc_room {
	uint8_t resident[TM_PYMALLOC_PAGES]; /* bit 0: the page is */
	uint64_t at[TM_PYMALLOC_PAGES];
	struct tm_pymalloc_header header[TM_PYMALLOC_PAGES];
};

/* A process's memory. */
struct tm_pymalloc_source {
	/* Which of so many pages (at most TM_PYMALLOC_PAGES) are resident. False: unknown. */
	bool (*look)(uint64_t at, size_t pages, uint8_t *ret_resident, void *arg);
	/* The headers at these addresses; one that can't be read is zeros. */
	void (*read)(const uint64_t *at, size_t count, struct tm_pymalloc_header *ret, void *arg);
	void *arg;
	struct tm_pymalloc_room *room;
};

struct tm_pymalloc_sum {
	uint64_t pools_bytes;    /* that were ever used */
	uint64_t resident_bytes; /* of these */
};

/* Adds what of an anonymous mapping is pools. Pages that are not resident are not touched. */
void tm_pymalloc_look(const struct tm_pymalloc_source *source, uint64_t begin, uint64_t end,
		      struct tm_pymalloc_sum *sum);

#endif
