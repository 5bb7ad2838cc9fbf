/* SPDX-License-Identifier: MIT */
/*
 * alloc: the meeting place of requests and heaps. A request becomes a slot of the thread's heap, a
 * block of whole pages, or, where neither may be touched, emergency memory. errno is set and kept
 * here as libc's functions do: ENOMEM where NULL means that, never changed by a free.
 *
 * Every function that tm_alloc_ops puts into tm_root.ops is reached by a tail jump, so that
 * the return address it sees is the program's.
 */
#ifndef TM_ALLOC_H
#define TM_ALLOC_H

#include <errno.h>

#include "shim/base/attrs.h"
#include "shim/base/tunables.h"

/*
 * Each with the account (the default); _checked without it (TIERMALLOC_LEDGER=off); _plain as well without
 * what wrong frees are known by.
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

/* Gives back what is free, in the caller's heap, orphans and all parts. Bytes given back. */
size_t tm_alloc_trim(void);

/* The same of one tier's blocks above 64 KiB; of the session tier also of what all slots share. */
size_t tm_alloc_trim_tier(enum tm_tier tier);

/* The forms that give every block at least TIERMALLOC_ALIGN; alloc_align.c. They keep the account. */
struct tm_ops;
void tm_alloc_align_ops(struct tm_ops *ops);

/* calloc's product. False: it overflows, errno is set. */
TM_INLINE bool tm_alloc_product(size_t n, size_t size, size_t *ret_bytes)
{
	if (TM_LIKELY(!__builtin_mul_overflow(n, size, ret_bytes)))
		return true;
	errno = ENOMEM;
	return false;
}

/* Everything behind the fast paths; see alloc_slow.c. */
struct tm_site;
struct tm_granule;
void *tm_alloc_any(size_t size, struct tm_site site); /* malloc for a given site */
/* With the account: from an arena, or counted by a row without height. NULL: the slow path's. */
void *tm_alloc_flat(size_t size, struct tm_site site);
void *tm_alloc_slow(size_t size, struct tm_site site);
/* For a tier that the program names; align a power of two of at least 16. */
void *tm_alloc_tier(size_t size, size_t align, enum tm_tier tier, struct tm_site site);
void *tm_alloc_realloc_slow(void *p, size_t size, struct tm_site site);
void *tm_alloc_zero_slow(size_t size, struct tm_site site);
/* NULL: the slow path's. */
void *tm_alloc_page_aligned(size_t align, size_t size, struct tm_site site);
void *tm_alloc_aligned_slow(size_t align, size_t size, struct tm_site site);
void *tm_alloc_zero_aligned(size_t align, size_t size, struct tm_site site);
/* `size` is what stands around the `asked` bytes of the program, too. */
struct tm_alloc_padded {
	size_t align, size, asked;
	bool zero;
};
void *tm_alloc_padded(const struct tm_alloc_padded *r, struct tm_site site);
/*
 * The live block that covers an address of the zone, and what was asked for, or more, up to what its
 * slot has, of aligned and of inherited ones; NULL: none.
 */
char *tm_alloc_block_of(const void *p, size_t *ret_bytes);
void tm_alloc_free_slow(void *p, struct tm_granule *g);
void tm_alloc_free_outside(void *p);
/* Counts a size that is not what was asked for; p lies in the zone. */
void tm_alloc_check_size(const void *p, size_t size);

#endif
