/* SPDX-License-Identifier: MIT */
#include "shim/alloc.h"

#include <errno.h>
#include <string.h>

#include "shim/boot.h"
#include "shim/cxx.h"
#include "shim/heap/span.h"
#include "shim/heap/tcache_inline.h"
#include "shim/heap/tier.h"

TM_INLINE void *take(size_t size, const struct tm_site *site, enum tm_counting count)
{
	if (TM_LIKELY(size <= TM_SMALL_MAX))
		return tm_tcache_take(tm_class_of_small(size), size, TM_SPAN_SMALL, site, count);
	if (size - TM_SOLO_ABOVE - 1 < TM_SLOT_MAX - TM_SOLO_ABOVE)
		return tm_tcache_take(TM_SOLO_CLASS, size, TM_SPAN_SOLO, site, count);
	if (size < TM_SLOT_MAX && count == TM_COUNTED)
		return tm_tcache_take_medium(tm_class_of_medium(size), size, site);
	if (size < TM_SLOT_MAX)
		return tm_tcache_take(tm_class_of_medium(size), size, TM_SPAN_MEDIUM, site, count);
	return NULL;
}

/* Aligned to more than an arena's lines, so not from an arena. With the account. */
void *tm_alloc_page_aligned(size_t align, size_t size, struct tm_site site)
{
	size_t padded = (size + align - 1) & ~(align - 1);

	if (padded <= TM_SMALL_MAX || !tm_class_is_aligned(padded, align) ||
	    TM_UNLIKELY(tm_tier_is_ruled()))
		return NULL;
	if (padded > TM_SOLO_ABOVE)
		return tm_tcache_take(TM_SOLO_CLASS, size, TM_SPAN_SOLO, &site, TM_COUNTED);
	return tm_tcache_take(tm_class_of_medium(padded), size, TM_SPAN_MEDIUM, &site, TM_COUNTED);
}

/*
 * Frees of other heaps' and of medium slots. Separate functions keep the fast path without a frame.
 */
TM_INLINE void give_longer(void *p, struct tm_granule *g, enum tm_counting count)
{
	uintptr_t bits = tm_granule_owner(g) & TM_OWNER_SOLO;

	if (bits == 0) {
		if (tm_tcache_give_remote(p, g, TM_SPAN_SMALL, count) == TM_FREE_DONE)
			return;
	} else if (bits == TM_OWNER_SOLO) {
		if (tm_tcache_give_remote(p, g, TM_SPAN_SOLO, count) == TM_FREE_DONE)
			return;
	} else if (count == TM_COUNTED && bits == TM_OWNER_ARENA &&
		   tm_tcache_give_arena(p, g) == TM_FREE_DONE) {
		return;
	} else if (tm_tcache_give_remote(p, g, TM_SPAN_MEDIUM, count) == TM_FREE_DONE) {
		return;
	}
	tm_alloc_free_slow(p, g);
}

static TM_NOINLINE void give_other(void *p, struct tm_granule *g)
{
	give_longer(p, g, TM_COUNTED);
}

static TM_NOINLINE void give_other_checked(void *p, struct tm_granule *g)
{
	give_longer(p, g, TM_CHECKED);
}

static TM_NOINLINE void give_other_plain(void *p, struct tm_granule *g)
{
	give_longer(p, g, TM_PLAIN);
}

TM_INLINE void give(void *p, enum tm_counting count)
{
	if (TM_UNLIKELY(!tm_zone_contains(p))) {
		tm_alloc_free_outside(p);
		return;
	}
	struct tm_granule *g = tm_zone_granule(p);
	uintptr_t whose = count == TM_COUNTED ? tm_tcache_whose(g, count) : 0;
	if (TM_LIKELY(count == TM_COUNTED ? whose == 0 : tm_tcache_is_mine(g, count))) {
		if (TM_LIKELY(tm_tcache_give(p, g, TM_SPAN_SMALL, count) == TM_FREE_DONE))
			return;
	} else if ((whose = count == TM_COUNTED ? whose : tm_tcache_whose(g, count)) ==
		   TM_OWNER_SOLO) {
		if (tm_tcache_give(p, g, TM_SPAN_SOLO, count) == TM_FREE_DONE)
			return;
	} else if (whose == TM_OWNER_MEDIUM) {
		if (tm_tcache_give(p, g, TM_SPAN_MEDIUM, count) == TM_FREE_DONE)
			return;
	}
	if (count == TM_COUNTED)
		give_other(p, g);
	else if (count == TM_CHECKED)
		give_other_checked(p, g);
	else
		give_other_plain(p, g);
}

/*
 * The size of a sized delete is only a hint (H38), since programs delete through base classes, but
 * a wrong one is counted. Small sizes are compared by class.
 */
TM_INLINE void give_sized(void *p, size_t size, enum tm_counting count)
{
	if (TM_LIKELY(tm_zone_contains(p)) &&
	    TM_UNLIKELY(size - 1 >= TM_SMALL_MAX ||
			tm_zone_granule(p)->klass != tm_class_of_small(size)))
		tm_alloc_check_size(p, size);
	give(p, count);
}

/*
 * Small slots are multiples of 16-byte vectors. Up to four vectors are cleared or copied inline, by
 * two or four possibly overlapping stores: calling libc would take three times the instructions.
 */
typedef uint64_t vector __attribute__((vector_size(16), may_alias));
#define VECTORS 4

/* Clears the slot of a request of 1 to 16 * VECTORS bytes. */
TM_INLINE void *clear(void *p, size_t bytes)
{
	vector *v = p, *last = (vector *)((char *)p + ((bytes - 1) & ~(size_t)15));

	*v = *last = (vector){0};
	if (bytes > 2 * sizeof(*v))
		v[1] = last[-1] = (vector){0};
	return p;
}

/* Copies 1 to VECTORS vectors. */
TM_INLINE void copy(void *to, const void *from, size_t vectors)
{
	vector *v = to;
	const vector *w = from;
	vector first = w[0], last = w[vectors - 1];

	if (vectors > 2) {
		vector second = w[1], third = w[vectors - 2];

		v[1] = second;
		v[vectors - 2] = third;
	}
	v[0] = first;
	v[vectors - 1] = last;
}

static TM_NOINLINE void *too_long(void)
{
	errno = ENOMEM;
	return NULL;
}

TM_INLINE void *take_zeroed(size_t n, size_t size, const struct tm_site *site,
			    enum tm_counting count)
{
	size_t bytes;

	if (TM_UNLIKELY(__builtin_mul_overflow(n, size, &bytes)))
		return too_long();
	void *p = take(bytes, site, count);
	if (TM_LIKELY(p != NULL))
		return bytes - 1 < VECTORS * sizeof(vector) ? clear(p, bytes) : memset(p, 0, bytes);
	return tm_alloc_zero_slow(bytes, site == NULL ? TM_SITE_HERE : *site);
}

/*
 * align: a power of two. NULL: go on with the slow path. The size is rounded up, so that a small
 * slot's four size bits match the counted size (account.h), and a small class of that size is
 * naturally aligned.
 */
TM_INLINE void *take_aligned_slot(size_t align, size_t size, const struct tm_site *site,
				  enum tm_counting count)
{
	if (TM_LIKELY(align > 16)) {
		if (TM_UNLIKELY(align > TM_PAGE_BYTES || size - 1 >= TM_SLOT_MAX))
			return NULL;
		size = (size + align - 1) & -align;
		if (size > TM_SMALL_MAX && (!tm_class_is_aligned(size, align) ||
					    (count == TM_COUNTED && align > TM_ARENA_LINE)))
			return NULL;
	}
	return take(size, site, count);
}

TM_INLINE void *take_aligned(size_t align, size_t size, const struct tm_site *site,
			     enum tm_counting count)
{
	void *p = take_aligned_slot(align, size, site, count);

	if (TM_LIKELY(p != NULL))
		return p;
	return tm_alloc_aligned_slow(align, size, site == NULL ? TM_SITE_HERE : *site);
}

static TM_NOINLINE int posix_slow(void **ret_p, size_t align, size_t size, struct tm_site site)
{
	int saved = errno;
	void *p = tm_alloc_aligned_slow(align, size, site);

	errno = saved;
	if (p == NULL)
		return ENOMEM;
	*ret_p = p;
	return 0;
}

TM_INLINE int take_posix(void **ret_p, size_t align, size_t size, enum tm_counting count)
{
	if (align < sizeof(void *) || (align & (align - 1)) != 0)
		return EINVAL;
	void *p = take_aligned_slot(align, size, NULL, count);
	if (TM_UNLIKELY(p == NULL))
		return posix_slow(ret_p, align, size, TM_SITE_HERE);
	*ret_p = p;
	return 0;
}

/* For temporary rows, whose free lists are empty: tries the arena, if it serves this size. */
TM_INLINE void *take_temporary(size_t size, struct tm_site site)
{
	if (size <= TM_ARENA_MAX)
		return tm_arena_try(size, site);
	if (size > TM_SOLO_ABOVE || ((struct tm_heap *)tm_heap_word)->medium_left <= 0 ||
	    TM_UNLIKELY(tm_tier_is_ruled()))
		return NULL;
	return tm_tcache_take(tm_class_of_medium(size), size, TM_SPAN_MEDIUM, &site, TM_COUNTED);
}

/*
 * After the fast path found an empty free list, or no row at the key's hash. Sites seen at many
 * stack heights (recursion, fibers) are counted by a row without height: this looks for that.
 */
TM_INLINE void *take_flat(size_t size, struct tm_site site)
{
	struct tm_site flat = {site.return_address, 0};
	void *p = take_temporary(size, site);

	return p != NULL ? p : take(size, &flat, TM_COUNTED);
}

void *tm_alloc_flat(size_t size, struct tm_site site)
{
	return take_flat(size, site);
}

static TM_NOINLINE void *slow_counted(size_t size, struct tm_site site)
{
	void *p = take_flat(size, site);

	return TM_LIKELY(p != NULL) ? p : tm_alloc_slow(size, site);
}

void *tm_alloc_any(size_t size, struct tm_site site)
{
	void *p;

	if (tm_account_is_kept) {
		p = take(size, &site, TM_COUNTED);
		return TM_LIKELY(p != NULL) ? p : slow_counted(size, site);
	}
	p = tm_span_keeps_entries ? take(size, &site, TM_CHECKED) : take(size, &site, TM_PLAIN);
	return TM_LIKELY(p != NULL) ? p : tm_alloc_slow(size, site);
}

static TM_NOINLINE void *slow_plain(size_t size, struct tm_site site)
{
	return tm_alloc_slow(size, site);
}

/* Tail-called: it sees the same return address, so the fast path need not keep the site. */
static TM_NOINLINE void *slow_counted_here(size_t size)
{
	return slow_counted(size, TM_SITE_HERE);
}

static TM_NOINLINE void *slow_plain_here(size_t size)
{
	return slow_plain(size, TM_SITE_HERE);
}

/* Each function in three variants: with the account, without it, without side entries (alloc.h). */
#define VARIANTS(suffix, count, slow)                                                              \
	void *tm_alloc_malloc##suffix(size_t size)                                                 \
	{                                                                                          \
		void *p = take(size, NULL, count);                                                 \
		if (TM_LIKELY(p != NULL))                                                          \
			return p;                                                                  \
		return TM_TAIL_JUMPS ? slow##_here(size) : slow(size, TM_SITE_HERE);               \
	}                                                                                          \
	void tm_alloc_free##suffix(void *p)                                                        \
	{                                                                                          \
		give(p, count);                                                                    \
	}                                                                                          \
	void tm_alloc_free_sized##suffix(void *p, size_t size)                                     \
	{                                                                                          \
		give_sized(p, size, count);                                                        \
	}                                                                                          \
	void *tm_alloc_calloc##suffix(size_t n, size_t size)                                       \
	{                                                                                          \
		return take_zeroed(n, size, NULL, count);                                          \
	}                                                                                          \
	void *tm_alloc_aligned##suffix(size_t align, size_t size)                                  \
	{                                                                                          \
		return take_aligned(align, size, NULL, count);                                     \
	}                                                                                          \
	int tm_alloc_posix_memalign##suffix(void **ret_p, size_t align, size_t size)               \
	{                                                                                          \
		return take_posix(ret_p, align, size, count);                                      \
	}                                                                                          \
	void *tm_alloc_new##suffix(size_t size)                                                    \
	{                                                                                          \
		void *p = take(size, NULL, count);                                                 \
		if (TM_LIKELY(p != NULL))                                                          \
			return p;                                                                  \
		p = slow(size, TM_SITE_HERE);                                                      \
		return TM_LIKELY(p != NULL) ? p : tm_cxx_new_failed(size, 16);                     \
	}                                                                                          \
	void *tm_alloc_new_nothrow##suffix(size_t size)                                            \
	{                                                                                          \
		void *p = take(size, NULL, count);                                                 \
		if (TM_LIKELY(p != NULL))                                                          \
			return p;                                                                  \
		p = slow(size, TM_SITE_HERE);                                                      \
		return TM_LIKELY(p != NULL) ? p : tm_cxx_nothrow_failed(size, 16);                 \
	}                                                                                          \
	void *tm_alloc_new_aligned##suffix(size_t size, size_t align)                              \
	{                                                                                          \
		void *p = take_aligned(align, size, NULL, count);                                  \
		return TM_LIKELY(p != NULL) ? p : tm_cxx_new_failed(size, align);                  \
	}                                                                                          \
	void *tm_alloc_new_aligned_nothrow##suffix(size_t size, size_t align)                      \
	{                                                                                          \
		void *p = take_aligned(align, size, NULL, count);                                  \
		return TM_LIKELY(p != NULL) ? p : tm_cxx_nothrow_failed(size, align);              \
	}

VARIANTS(, TM_COUNTED, slow_counted)
VARIANTS(_checked, TM_CHECKED, slow_plain)
VARIANTS(_plain, TM_PLAIN, slow_plain)

static TM_NOINLINE void *move_longer(void *p, void *fresh, size_t bytes, void *entry)
{
	uintptr_t word = tm_heap_word;

	memcpy(fresh, p, bytes);
	tm_tcache_push(tm_tcache_enter(word), p, tm_zone_granule(p), TM_SPAN_SMALL, entry);
	tm_tcache_leave(word);
	return fresh;
}

/* Tail-called, as slow_counted_here. */
static TM_NOINLINE void *resize_slow_here(void *p, size_t size)
{
	return tm_alloc_realloc_slow(p, size, TM_SITE_HERE);
}

/* Fast path: only from a small slot of the caller's own heap to another small class. */
TM_INLINE void *resize(void *p, size_t size, enum tm_counting count)
{
	const struct tm_granule *g = tm_zone_granule(p);
	size_t klass = (size + 15) / 16; /* as tm_class_of_small, which gcc would widen */
	void *entry = NULL;

	if (TM_UNLIKELY(size - 1 >= TM_SMALL_MAX || !tm_zone_contains(p) || klass == g->klass ||
			!tm_tcache_is_mine(g, count) ||
			!tm_tcache_entry(p, g, TM_SPAN_SMALL, &entry) || !tm_tcache_in_use(entry)))
		goto slow;
	uintptr_t word = tm_heap_word;
	struct tm_heap *h = tm_tcache_enter(word);
	void *fresh = tm_tcache_pop(h, klass, size, TM_SPAN_SMALL, NULL, count);
	if (TM_UNLIKELY(fresh == NULL)) {
		tm_tcache_leave(word);
		goto slow;
	}
	/* classes are multiples of 16 bytes, so no table is needed */
	size_t vectors = klass < g->klass ? klass : g->klass;
	if (vectors > VECTORS) {
		tm_tcache_leave(word);
		return move_longer(p, fresh, vectors * sizeof(vector), entry);
	}
	copy(fresh, p, vectors);
	tm_tcache_push(h, p, g, TM_SPAN_SMALL, entry);
	tm_tcache_leave(word);
	return fresh;
slow:
	return TM_TAIL_JUMPS ? resize_slow_here(p, size)
			     : tm_alloc_realloc_slow(p, size, TM_SITE_HERE);
}

void *tm_alloc_realloc(void *p, size_t size)
{
	return resize(p, size, TM_COUNTED);
}

void *tm_alloc_realloc_checked(void *p, size_t size)
{
	return resize(p, size, TM_CHECKED);
}

/* Without side entries it is unknown whether p is in use. */
void *tm_alloc_realloc_plain(void *p, size_t size)
{
	return tm_alloc_realloc_slow(p, size, TM_SITE_HERE);
}
