/* SPDX-License-Identifier: MIT */
#include "shim/heap/grow.h"

#include <errno.h>

#include "shim/base/bits.h"
#include "shim/heap/extent.h"
#include "shim/heap/huge.h"
#include "shim/heap/meta.h"
#include "shim/heap/numa.h"
#include "shim/heap/purge.h"
#include "shim/os/lock.h"
#include "shim/os/mem.h"

/* Length of a range, as a multiple of its block's length when it gets the range. */
#define ROOM_FACTOR 8u
#define ROOM_FACTOR_TIGHT 2u /* once half of the zone's addresses are used */
#define ROOM_UNITS_MIN 4u

/* Ranges are cut from larger reservations, so that they are less scattered between the parts. */
#define CHUNK_UNITS_MIN 32u
#define CHUNK_UNITS_MAX 512u

/*
 * A block that doubled when it got its range won't grow again before it is full. If it covers less
 * than this of its only unit, a huge page would make half a unit resident for nothing. A block that
 * grows in steps soon fills it.
 */
#define LEAPT_BYTES (TM_UNIT_BYTES / 4 * 3)

/* Ranges get huge pages once the process has this much memory. */
#define HUGE_FROM_BYTES ((size_t)32 << 20)

#define CLASSES 20     /* classes of ranges by powers of two of units, up to the whole zone */
#define CACHE_LOOKS 32 /* freed ranges searched for one that has memory */

struct tm_range {
	struct tm_range *next;
	struct tm_range *prev;
	uint32_t unit;   /* [const] first unit */
	uint32_t units;  /* [const] a power of two */
	uint32_t mapped; /* [lock] mapped units, from the first on */
	uint32_t used;   /* [lock] of these the block's; 0: free */
	uint32_t tick;   /* [lock] grow.tick at the last change */
	uint32_t image;  /* [lock] grow.image when it was put on its list */
	bool advised;    /* [lock] MADV_HUGEPAGE was given for all that is mapped */
	/* [lock] its block grew by half or more at once and leaves part of its unit empty */
	bool leapt;
};

struct range_list {
	struct tm_range *first;
	struct tm_range *last;
};

static struct {
	struct tm_lock lock;
	bool ready;
	uint32_t tick;
	uint32_t image; /* how often all lists were dropped, after a raw fork */
	struct range_list live;
	struct range_list cached;        /* free, with memory; most recent first */
	struct tm_range *empty[CLASSES]; /* free, nothing mapped */
	uint32_t chunk_unit;             /* unused rest of the newest reservation */
	uint32_t chunk_units;
	uint32_t next_chunk_units;
	size_t mapped_units;
	size_t used_units;
} grow = {.lock = TM_LOCK_INIT(TM_RANK_LARGE), .next_chunk_units = CHUNK_UNITS_MIN};

static TM_AT_START_CODE void lock_grow(void)
{
	if (TM_UNLIKELY(tm_lock_acquire(&grow.lock) == TM_LOCK_STOLEN)) {
		/*
		 * lists may be half changed: drop them, and leave the ranges that were free unused
		 */
		grow.live = (struct range_list){NULL, NULL};
		grow.cached = grow.live;
		for (int i = 0; i < CLASSES; i++)
			grow.empty[i] = NULL;
		grow.chunk_units = 0;
		grow.image++;
	}
	if (TM_UNLIKELY(!grow.ready)) {
		grow.ready = true;
		tm_lock_register(&grow.lock);
	}
}

static void unlock_grow(void)
{
	tm_lock_release(&grow.lock);
}

static void list_remove(struct range_list *list, struct tm_range *r)
{
	if (TM_UNLIKELY(r->image != grow.image)) /* its list was dropped */
		return;
	if (r->prev)
		r->prev->next = r->next;
	else
		list->first = r->next;
	if (r->next)
		r->next->prev = r->prev;
	else
		list->last = r->prev;
}

static void list_push(struct range_list *list, struct tm_range *r)
{
	r->image = grow.image;
	r->prev = NULL;
	r->next = list->first;
	if (list->first)
		list->first->prev = r;
	else
		list->last = r;
	list->first = r;
}

static void push_empty(struct tm_range *r)
{
	unsigned int class = tm_bits_log2(r->units);

	r->next = grow.empty[class];
	grow.empty[class] = r;
}

static void *range_addr(const struct tm_range *r, uint32_t unit)
{
	return (void *)(tm_zone.base + ((uintptr_t)(r->unit + unit) << TM_UNIT_SHIFT));
}

void *tm_grow_start(const struct tm_range *range)
{
	return range_addr(range, 0);
}

static size_t units_of(size_t bytes)
{
	return (bytes + TM_UNIT_BYTES - 1) >> TM_UNIT_SHIFT;
}

/* Length in units of a range for a block of `units`: a power of two, with room to grow. */
static uint32_t range_units(size_t units)
{
	size_t zone_units = tm_zone.limit >> TM_UNIT_SHIFT;
	bool tight = __atomic_load_n(&tm_zone.len, __ATOMIC_RELAXED) > tm_zone.limit / 2;
	size_t want = units * (tight ? ROOM_FACTOR_TIGHT : ROOM_FACTOR);

	if (want > zone_units / 4)
		want = units + units / 2;
	return (uint32_t)1 << tm_bits_log2_up(tm_bits_max(want, ROOM_UNITS_MIN));
}

/* Make a range of addresses that were never used. */
static struct tm_range *new_range(uint32_t units)
{
	uint32_t chunk = (uint32_t)tm_bits_max(units, grow.next_chunk_units);
	struct tm_range *r;
	uint32_t page;

	if (grow.chunk_units < units) {
		if (!tm_zone_reserve(TM_PART_GROW, (size_t)chunk << TM_UNIT_SHIFT, &page)) {
			chunk = units;
			if (!tm_zone_reserve(TM_PART_GROW, (size_t)chunk << TM_UNIT_SHIFT, &page))
				return NULL;
		}
		/* the rest of the old reservation is lost: addresses only */
		grow.chunk_unit = page / TM_UNIT_PAGES;
		grow.chunk_units = chunk;
		grow.next_chunk_units = (uint32_t)tm_bits_min(2 * chunk, CHUNK_UNITS_MAX);
	}
	r = tm_meta_alloc(sizeof(*r), _Alignof(struct tm_range));
	if (r == NULL)
		return NULL;
	r->unit = grow.chunk_unit;
	r->units = units;
	grow.chunk_unit += units;
	grow.chunk_units -= units;
	return r;
}

static struct tm_range *empty_range(size_t units)
{
	uint32_t want = range_units(units);
	unsigned int class = tm_bits_log2(want);

	/* twice as much room does no harm */
	for (unsigned int c = class; c < CLASSES && c <= class + 1; c++) {
		struct tm_range *r = grow.empty[c];

		if (r) {
			grow.empty[c] = r->next;
			return r;
		}
	}
	return new_range(want);
}

static void set_mapped(struct tm_range *r, uint32_t units)
{
	__atomic_store_n(&grow.mapped_units, grow.mapped_units + units - r->mapped,
			 __ATOMIC_RELAXED);
	r->mapped = units;
}

static void set_used(struct tm_range *r, uint32_t units)
{
	__atomic_store_n(&grow.used_units, grow.used_units + units - r->used, __ATOMIC_RELAXED);
	r->used = units;
	r->tick = grow.tick;
}

/*
 * In a small process the memory of a block's last unit is worth more than its faults: a string that
 * grows to 4 MiB is no cache.
 */
static bool is_worth_huge_pages(const struct tm_range *r, uint32_t units)
{
	if (tm_zone.huge == TM_THP_EAGER)
		return true;
	if (units == 1 && r->leapt)
		return false;
	return tm_extent_used_bytes() + (grow.mapped_units << TM_UNIT_SHIFT) >= HUGE_FROM_BYTES;
}

/* Advise the whole range, whose mapped length becomes `units`, so that it stays one mapping. */
static void advise(struct tm_range *r, uint32_t units)
{
	enum tm_huge_step step = tm_huge_allowed();
	uint32_t from = r->mapped;

	if (step == TM_HUGE_ON_THP && !r->advised) {
		/* but not the mapped units if the program gave advice there */
		if (!tm_zone_is_tainted(r->unit * TM_UNIT_PAGES, (size_t)units * TM_UNIT_PAGES))
			from = 0;
		if (is_worth_huge_pages(r, units))
			r->advised =
				tm_zone.os->hugepage(range_addr(r, from),
						     (size_t)(units - from) << TM_UNIT_SHIFT) == 0;
		step = r->advised ? TM_HUGE_ON_THP : TM_HUGE_SPARSE;
	}
	tm_huge_stand(r->unit + from, units - from, step);
}

/*
 * Map the range up to `units`, with huge pages if allowed. The existing mapping is extended, so
 * that it stays one.
 */
static int map_to(struct tm_range *r, uint32_t units)
{
	size_t bytes = (size_t)(units - r->mapped) << TM_UNIT_SHIFT;
	void *addr = range_addr(r, r->mapped);
	int err = -EFAULT;

	if (units <= r->mapped)
		return 0;
	if (r->mapped)
		err = tm_zone.os->extend(range_addr(r, r->mapped - 1), TM_UNIT_BYTES,
					 TM_UNIT_BYTES + bytes);
	/* the program may have split the mapping by advice or protection: add another one */
	if (err == -EFAULT || err == -EINVAL) {
		err = tm_zone.os->map_at(addr, bytes, PROT_READ | PROT_WRITE);
		if (!err)
			tm_numa_fresh(TM_PART_GROW, tm_zone_page(addr), bytes >> TM_PAGE_SHIFT);
		if (!err && tm_zone.huge == TM_THP_DECLINE)
			(void)tm_zone.os->nohugepage(addr, bytes);
		if (!err)
			r->advised = false;
	}
	if (!err) {
		advise(r, units);
		set_mapped(r, units);
	}
	return err;
}

/* Unmap all but the first `units` units. Returns the bytes given back. */
static size_t unmap_from(struct tm_range *r, uint32_t units)
{
	size_t bytes;

	if (r->mapped <= units)
		return 0;
	bytes = (size_t)(r->mapped - units) << TM_UNIT_SHIFT;
	/* ENOMEM: too many mappings to split one; the pages can go nevertheless (H56) */
	if (tm_zone.os->unmap(range_addr(r, units), bytes))
		return tm_zone.os->dontneed(range_addr(r, units), bytes) ? 0 : bytes;
	tm_huge_stand(r->unit + units, r->mapped - units, TM_HUGE_UNMAPPED);
	set_mapped(r, units);
	return bytes;
}

/* Take the freed range whose mapped memory fits best: the least that is enough, else the most. */
static struct tm_range *cached_range(size_t units)
{
	struct tm_range *best = NULL;
	int looks = CACHE_LOOKS;

	for (struct tm_range *r = grow.cached.first; r && looks; r = r->next, looks--) {
		if (r->units < units)
			continue;
		if (best == NULL ||
		    (best->mapped < units ? r->mapped > best->mapped
					  : r->mapped >= units && r->mapped < best->mapped))
			best = r;
	}
	if (best)
		list_remove(&grow.cached, best);
	return best;
}

static void put_free(struct tm_range *r)
{
	set_used(r, 0);
	if (r->mapped)
		list_push(&grow.cached, r);
	else
		push_empty(r);
}

struct tm_range *tm_grow_alloc(size_t bytes, size_t old_bytes)
{
	size_t units = units_of(bytes);
	struct tm_range *r = NULL;

	if (units > tm_zone.limit >> TM_UNIT_SHIFT)
		return NULL;
	lock_grow();
	/*
	 * another mapping of the process may lie in the range: then it is lost and the next is
	 * tried
	 */
	for (int attempt = 0; attempt < 3; attempt++) {
		int err;

		r = cached_range(units);
		if (r == NULL)
			r = empty_range(units);
		if (r == NULL)
			break;
		r->leapt = bytes < LEAPT_BYTES && bytes / 3 > old_bytes / 2;
		err = map_to(r, (uint32_t)units);
		if (err == 0) {
			set_used(r, (uint32_t)units);
			list_push(&grow.live, r);
			break;
		}
		if (err != -EEXIST)
			put_free(r);
		else
			(void)unmap_from(r, 0);
		r = NULL;
		if (err != -EEXIST)
			break;
	}
	unlock_grow();
	return r;
}

/*
 * Before Linux 6.17 the kernel moves one mapping at a time; a block has several where the program
 * gave advice. What can't be moved is copied, so that this can't fail.
 */
static void move_units(const struct tm_range *from, const struct tm_range *to, uint32_t units)
{
	size_t bytes = (size_t)units << TM_UNIT_SHIFT;

	if (tm_zone.os->remap(range_addr(from, 0), bytes, bytes, range_addr(to, 0)))
		return;
	for (uint32_t i = 0; i < units; i++)
		if (!tm_zone.os->remap(range_addr(from, i), TM_UNIT_BYTES, TM_UNIT_BYTES,
				       range_addr(to, i)))
			__builtin_memcpy(range_addr(to, i), range_addr(from, i), TM_UNIT_BYTES);
}

/* Move the block into a range with room for `units`. NULL: no memory, nothing changed. */
static struct tm_range *move(struct tm_range *old, size_t units)
{
	struct tm_range *r = empty_range(units);

	if (r == NULL)
		return NULL;
	/* mapped first, so that pages are never moved over another mapping of the process */
	if (map_to(r, (uint32_t)units)) {
		(void)unmap_from(r, 0);
		put_free(r);
		return NULL;
	}
	move_units(old, r, old->used);
	/* mappings move with their advice */
	r->advised = r->advised && old->advised;
	list_remove(&grow.live, old);
	(void)unmap_from(old, 0);
	put_free(old);
	set_used(r, (uint32_t)units);
	list_push(&grow.live, r);
	return r;
}

struct tm_range *tm_grow_resize(struct tm_range *range, size_t bytes)
{
	size_t units = units_of(bytes);
	struct tm_range *r = range;
	int err = -ENOMEM;

	if (units > tm_zone.limit >> TM_UNIT_SHIFT)
		return NULL;
	lock_grow();
	if (units <= range->units)
		err = map_to(range, (uint32_t)units);
	if (err == 0)
		set_used(range, (uint32_t)units);
	else
		r = move(range, units);
	unlock_grow();
	return r;
}

/* Unmap a range whose pages the program tainted, so that the next block doesn't inherit that. */
static void discard(struct tm_range *r)
{
	(void)unmap_from(r, 0);
	for (uint32_t i = 0; i < r->units; i++)
		tm_zone.units[r->unit + i].tainted = 0;
}

void tm_grow_free(struct tm_range *range)
{
	lock_grow();
	list_remove(&grow.live, range);
	if (tm_zone_is_tainted(range->unit * TM_UNIT_PAGES, (size_t)range->units * TM_UNIT_PAGES))
		discard(range);
	put_free(range);
	unlock_grow();
	tm_purge_notice(0);
}

static size_t retained_bytes(void)
{
	return (grow.mapped_units - grow.used_units) << TM_UNIT_SHIFT;
}

/* Move a cached range to the empty ones if nothing of it is mapped any more. */
static void put_away(struct tm_range *r)
{
	if (r->mapped != 0)
		return;
	list_remove(&grow.cached, r);
	push_empty(r);
}

/* Unmap what is mapped beyond `units`, at most bytes_max. Returns the bytes. */
static size_t unmap_some(struct tm_range *r, uint32_t units, size_t bytes_max)
{
	size_t spare = r->mapped > units ? r->mapped - units : 0;

	return unmap_from(r, r->mapped - (uint32_t)tm_bits_min(spare, bytes_max >> TM_UNIT_SHIFT));
}

/*
 * Unmap what no block covers in ranges unchanged for `ticks` ticks, down to keep_bytes and at most
 * bytes_max. Returns the bytes.
 */
static size_t trim(uint32_t ticks, size_t keep_bytes, size_t bytes_max)
{
	size_t bytes = 0;

	for (struct tm_range *r = grow.live.first; r && retained_bytes() > keep_bytes; r = r->next)
		if (grow.tick - r->tick >= ticks)
			bytes += unmap_some(r, r->used, bytes_max - bytes);
	for (struct tm_range *r = grow.cached.last; r && retained_bytes() > keep_bytes;) {
		struct tm_range *prev = r->prev;

		if (grow.tick - r->tick < ticks || bytes + TM_UNIT_BYTES > bytes_max)
			break;
		bytes += unmap_some(r, 0, bytes_max - bytes);
		put_away(r);
		r = prev;
	}
	return bytes;
}

TM_AT_START_CODE void tm_grow_init(void)
{
	lock_grow();
	unlock_grow();
}

size_t tm_grow_tick(uint32_t ticks, size_t keep_bytes, size_t bytes_max)
{
	size_t left;

	lock_grow();
	grow.tick++;
	(void)trim(ticks, keep_bytes, bytes_max);
	left = retained_bytes();
	unlock_grow();
	return left > keep_bytes ? left - keep_bytes : 0;
}

size_t tm_grow_give(size_t units)
{
	size_t bytes = 0;

	lock_grow();
	for (struct tm_range *r = grow.cached.last; r && units << TM_UNIT_SHIFT > bytes;) {
		size_t more = units - (bytes >> TM_UNIT_SHIFT);
		struct tm_range *prev = r->prev;

		bytes += unmap_from(r, r->mapped - (uint32_t)tm_bits_min(more, r->mapped));
		put_away(r);
		r = prev;
	}
	unlock_grow();
	return bytes;
}

size_t tm_grow_release(void)
{
	size_t bytes;

	lock_grow();
	bytes = trim(0, 0, SIZE_MAX);
	unlock_grow();
	return bytes;
}

TM_AT_START_CODE size_t tm_grow_retained(void)
{
	size_t mapped = __atomic_load_n(&grow.mapped_units, __ATOMIC_RELAXED);
	size_t used = __atomic_load_n(&grow.used_units, __ATOMIC_RELAXED);

	return mapped > used ? (mapped - used) << TM_UNIT_SHIFT : 0;
}

size_t tm_grow_mapped(void)
{
	return __atomic_load_n(&grow.mapped_units, __ATOMIC_RELAXED) << TM_UNIT_SHIFT;
}

static const char *check_list(const struct range_list *list, bool used, size_t *mapped_units,
			      size_t *used_units)
{
	const struct tm_range *prev = NULL;

	for (const struct tm_range *r = list->first; r; r = r->next) {
		if (r->prev != prev)
			return "grow: links of a list agree";
		if (r->mapped > r->units || r->used > r->mapped)
			return "grow: a block lies in the mapped front of its range";
		if ((r->used != 0) != used || r->mapped == 0)
			return "grow: live and cached ranges have a list each";
		*mapped_units += r->mapped;
		*used_units += r->used;
		prev = r;
	}
	return list->last == prev ? NULL : "grow: a list ends with its last";
}

const char *tm_grow_check(void)
{
	size_t mapped_units = 0, used_units = 0;
	const char *err;

	lock_grow();
	err = check_list(&grow.live, true, &mapped_units, &used_units);
	if (!err)
		err = check_list(&grow.cached, false, &mapped_units, &used_units);
	for (int i = 0; !err && i < CLASSES; i++)
		for (const struct tm_range *r = grow.empty[i]; r; r = r->next)
			if (r->mapped || r->used || tm_bits_log2(r->units) != (unsigned int)i)
				err = "grow: empty ranges have nothing mapped and are in their class";
	if (!err && (mapped_units != grow.mapped_units || used_units != grow.used_units))
		err = "grow: mapped and used units are counted";
	unlock_grow();
	return err;
}

void tm_grow_clear(void)
{
	lock_grow();
	grow.live = (struct range_list){NULL, NULL};
	grow.cached = grow.live;
	for (int i = 0; i < CLASSES; i++)
		grow.empty[i] = NULL;
	grow.chunk_units = 0;
	grow.mapped_units = 0;
	grow.used_units = 0;
	unlock_grow();
}
