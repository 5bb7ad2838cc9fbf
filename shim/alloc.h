/* SPDX-License-Identifier: MIT */
/*
 * alloc: the malloc family on top of the heaps. Serves a request from the thread's heap (a slot),
 * from the page level (a block of whole pages) or, where neither may be used (a signal handler that
 * interrupted the allocator), from emergency memory. Handles errno as libc does: sets ENOMEM when a
 * request fails, never changes errno in a free.
 *
 * The exported functions reach everything that tm_alloc_ops puts into tm_root.ops by a tail jump,
 * so the return address seen here is that of the program's call: the call site.
 */
#ifndef TM_ALLOC_H
#define TM_ALLOC_H

#include <errno.h>

#include "shim/base/attrs.h"
#include "shim/base/tunables.h"

/*
 * Three variants of each entry point. No suffix: keeps the account (the default). _checked: no
 * account (TIERMALLOC_LEDGER=off), but side entries that reveal wrong frees. _plain: neither.
 */
#define TM_ALLOC_VARIANT(suffix)                                                                   \
	void *tm_alloc_malloc##suffix(size_t size);                                                \
	void tm_alloc_free##suffix(void *p);                                                       \
	void *tm_alloc_calloc##suffix(size_t n, size_t size);                                      \
	void *tm_alloc_aligned##suffix(size_t align, size_t size);                                 \
	int tm_alloc_posix_memalign##suffix(void **ret_p, size_t align, size_t size);              \
	void *tm_alloc_new##suffix(size_t size);                                                   \
	void *tm_alloc_new_aligned##suffix(size_t size, size_t align);                             \
	void *tm_alloc_new_nothrow##suffix(size_t size);                                           \
	void *tm_alloc_new_aligned_nothrow##suffix(size_t size, size_t align);                     \
	void tm_alloc_free_sized##suffix(void *p, size_t size);                                    \
	void *tm_alloc_realloc##suffix(void *p, size_t size);

TM_ALLOC_VARIANT()
TM_ALLOC_VARIANT(_checked)
TM_ALLOC_VARIANT(_plain)

size_t tm_alloc_usable(void *p);

/*
 * Returns free memory of the caller's heap, of orphans and of all parts to the kernel. Result:
 * bytes returned.
 */
size_t tm_alloc_trim(void);

/*
 * The same for one tier: its blocks above 64 KiB, and for the session tier also the memory of all
 * slots, which the tiers share.
 */
size_t tm_alloc_trim_tier(enum tm_tier tier);

/* Installs variants that align every block to at least TIERMALLOC_ALIGN and keep the account. */
struct tm_ops;
void tm_alloc_align_ops(struct tm_ops *ops);

/* n * size for calloc. False on overflow, with errno ENOMEM. */
TM_INLINE bool tm_alloc_product(size_t n, size_t size, size_t *ret_bytes)
{
	if (TM_LIKELY(!__builtin_mul_overflow(n, size, ret_bytes)))
		return true;
	errno = ENOMEM;
	return false;
}

/* Slow paths (alloc_slow.c). Each counts the block for the given site. */
struct tm_site;
struct tm_granule;
void *tm_alloc_any(size_t size, struct tm_site site); /* malloc on behalf of a site */
/*
 * Second try of the fast path, only while the account is kept: takes from a temporary arena, or
 * counts by the site's row without stack height. NULL: the caller goes on with the slow path.
 */
void *tm_alloc_flat(size_t size, struct tm_site site);
void *tm_alloc_slow(size_t size, struct tm_site site);
/* Allocates in the tier that the program names; align: a power of two, at least 16. */
void *tm_alloc_tier(size_t size, size_t align, enum tm_tier tier, struct tm_site site);
void *tm_alloc_realloc_slow(void *p, size_t size, struct tm_site site);
void *tm_alloc_zero_slow(size_t size, struct tm_site site);
/* Fast path for a request aligned to whole pages. NULL: the caller goes on with the slow path. */
void *tm_alloc_page_aligned(size_t align, size_t size, struct tm_site site);
void *tm_alloc_aligned_slow(size_t align, size_t size, struct tm_site site);
void *tm_alloc_zero_aligned(size_t align, size_t size, struct tm_site site);
/* A request whose `size` includes the canaries around the `asked` bytes of the program. */
struct tm_alloc_padded {
	size_t align, size, asked;
	bool zero;
};
void *tm_alloc_padded(const struct tm_alloc_padded *r, struct tm_site site);
/*
 * Start of the live block that covers the zone address p; NULL if none does. *ret_bytes: the bytes
 * requested; for aligned and inherited blocks it may be more, up to the slot's size.
 */
char *tm_alloc_block_of(const void *p, size_t *ret_bytes);
void tm_alloc_free_slow(void *p, struct tm_granule *g);
void tm_alloc_free_outside(void *p);
/*
 * Counts an error (sized delete) if size is not the size requested for p, which lies in the zone.
 */
void tm_alloc_check_size(const void *p, size_t size);

#endif
