/* SPDX-License-Identifier: MIT */
/*
 * meta: memory for the library's own structures, in mappings of its own, apart from user data, so
 * that a program's overflow doesn't reach it and a forked child's writes to it copy few pages.
 *
 * Bump allocation from chunks; freed pieces wait in a list per size for the next request of that
 * size. Pieces from half a chunk on have a mapping each. One lock (rank META), taken last; any
 * thread may call. Nothing here is ever on a path that must not fail: giving user memory back needs
 * no metadata.
 */
#ifndef TM_HEAP_META_H
#define TM_HEAP_META_H

#include "shim/base/attrs.h"

/* Zeroed memory, aligned to align (a power of two up to 4 KiB; at least 16). NULL: no memory. */
void *tm_meta_alloc(size_t bytes, size_t align);

/* bytes and align as they were given to tm_meta_alloc; NULL is ignored. */
void tm_meta_free(void *p, size_t bytes, size_t align);

/* Bytes mapped, and of these the bytes handed out. */
void tm_meta_stats(size_t *ret_mapped, size_t *ret_used);

/* At boot: the lock must be in the fork handlers' walk before anybody forks. */
void tm_meta_init(void);

#endif
