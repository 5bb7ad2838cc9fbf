/* SPDX-License-Identifier: MIT */
/*
 * dense: which blocks get huge pages. A huge page under memory that a program reserves and hardly
 * touches makes 2 MiB of every touched byte: an engine with 70 MiB touched of 456 MiB held 309 (H58);
 * its small blocks were full and its large ones empty. So blocks are judged by their length, in bands
 * of powers of two: a band starts with small pages, and it is looked at how full its blocks are some
 * blocks later, living or freed. While they are full, the memory of its next ones is advised before
 * its first touch. Blocks of 32 MiB and more that were not asked for as zeros are weights and caches:
 * huge at once.
 *
 * tm_dense_note under the part's lock; several parts may do so at once. A look is one system call,
 * for the first blocks of a band and then for one in a few, and is not taken under a system call
 * filter (H68).
 */
#ifndef TM_HEAP_DENSE_H
#define TM_HEAP_DENSE_H

#include "shim/base/attrs.h"
#include "shim/heap/large.h"

/* The part hands out memory for a block that was not resident. [part lock] */
void tm_dense_note(enum tm_part part, uint32_t page, size_t pages);

/*
 * The same of memory for a block that has outgrown another, or for its new end: it was written as far as
 * it went, and will be again. So it is huge at once, in a part that a few units more don't make larger,
 * once enough has grown: buffers that grow row by row would else fault at each of them.
 */
void tm_dense_grown(enum tm_part part, uint32_t page, size_t pages);

/*
 * From a helper, before it gives anything back: looks at the blocks that nobody came to look at for a
 * tick. Where a program rests between its steps they would be gone when the next ones come.
 */
void tm_dense_tick(void);

/* A block begins that belongs to the caller. No lock. */
void tm_dense_born(void *p, size_t pages, enum tm_fill fill);

/* Tests only. */
void tm_dense_clear(void);

#endif
