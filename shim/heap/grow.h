/* SPDX-License-Identifier: MIT */
/*
 * grow: blocks that realloc grew past 1 MiB, such as a KV cache. Each has an address range of its
 * own with room behind it. Only the front of the range is mapped, in whole 2 MiB units, with huge
 * pages. So the block grows in place without a copy; past the end of its range it moves by mremap,
 * which moves page tables, not data.
 *
 * Owns the ranges, whose records are in metadata. Freed ranges keep their memory for the next such
 * block and are unmapped when no block needs them (tm_grow_tick). Any thread may call. One lock
 * (rank LARGE): held while a block moves between ranges, not while its data is first copied into
 * one.
 *
 * Invariant (tm_grow_check): the mapped units of a range are its first ones; a range that is not in
 * use is on one list; mapped and used units are counted.
 */
#ifndef TM_HEAP_GROW_H
#define TM_HEAP_GROW_H

#include "shim/heap/zone.h"

struct tm_range;

/*
 * Take a range in which `bytes` bytes from the start are mapped, for a block that had old_bytes;
 * contents undefined. NULL: no memory.
 */
struct tm_range *tm_grow_alloc(size_t bytes, size_t old_bytes);

/* Start of the range, a multiple of 2 MiB. */
void *tm_grow_start(const struct tm_range *range);

/*
 * Resize the range's block to end `bytes` bytes from the range's start. Returns the range that the
 * block lies in afterwards: this one, or another to which its pages were moved. NULL: no memory,
 * nothing has changed.
 */
struct tm_range *tm_grow_resize(struct tm_range *range, size_t bytes);

void tm_grow_free(struct tm_range *range);

/*
 * Count a tick; unmap what was unused for this many ticks, down to keep_bytes and at most
 * bytes_max. Returns the bytes that later ticks may give back.
 */
size_t tm_grow_tick(uint32_t ticks, size_t keep_bytes, size_t bytes_max);

/* Unmap about this many units of freed ranges, the longest unused first. Returns the bytes. */
size_t tm_grow_give(size_t units);

/* Unmap everything that no block covers. Returns the bytes. */
size_t tm_grow_release(void);

/* Mapped bytes that no block covers. Takes no lock; approximate. */
size_t tm_grow_retained(void);

/* Bytes mapped for ranges in all. Takes no lock; approximate. */
size_t tm_grow_mapped(void);

const char *tm_grow_check(void);

/* Reset; tests only. */
void tm_grow_clear(void);

/* At boot: registers the lock with the fork handlers before anybody can fork. */
void tm_grow_init(void);

#endif
