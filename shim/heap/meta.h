/* SPDX-License-Identifier: MIT */
/*
 * meta: memory for the library's own structures, in mappings apart from user data, so that a
 * program's overflow doesn't reach it and a forked child's writes to it copy few pages.
 *
 * Bump allocation from chunks; freed pieces wait in a list per size for the next request of that
 * size. Pieces from half a chunk on have a mapping each. One lock (rank META), taken last; any
 * thread may call. No path that must not fail allocates here: giving user memory back needs no
 * metadata.
 */
#ifndef TM_HEAP_META_H
#define TM_HEAP_META_H

#include "shim/base/attrs.h"

/*
 * Allocate zeroed memory, aligned to `align` (a power of two up to 4 KiB; at least 16). NULL: no
 * memory.
 */
void *tm_meta_alloc(size_t bytes, size_t align);

/* Free a piece; bytes and align as given to tm_meta_alloc. NULL is ignored. */
void tm_meta_free(void *p, size_t bytes, size_t align);

/* Bytes mapped, and of these the bytes handed out. */
void tm_meta_stats(size_t *ret_mapped, size_t *ret_used);

/* At boot: registers the lock with the fork handlers before anybody can fork. */
void tm_meta_init(void);

#endif
