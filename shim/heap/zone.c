/* SPDX-License-Identifier: MIT */
#include "shim/heap/zone.h"

#include <errno.h>

#include "shim/base/bits.h"
#include "shim/heap/huge.h"
#include "shim/heap/numa.h"
#include "shim/os/lock.h"
#include "shim/os/mem.h"
#include "shim/os/proc.h"
#include "shim/os/sys.h"

#define ZONE_PROT (PROT_READ | PROT_WRITE)
#define TM_GIANT_SHIFT 30
#define TM_GIANT_BYTES ((size_t)1 << TM_GIANT_SHIFT)
#define TABLE_STEP ((size_t)64 << 20)  /* zone bytes that one growth of the tables covers */
#define TABLE_GRAIN ((size_t)64 << 10) /* the largest kernel page size there is */
/* Where less room is left than this, tables are grown by what is needed. */
#define TABLE_STEP_SCANTY ((size_t)4 << 20)
#define TABLE_GAP ((size_t)1 << 30)
#define TABLES_BELOW (3 * TABLE_GAP) /* granules, tags, units: a gap each, for a zone of 1 TiB */

const struct tm_zone_os tm_zone_os_real = {
	.map_at = tm_mem_map_at,
	.map_fixed = tm_mem_map_fixed,
	.unmap = tm_mem_unmap,
	.dontneed = tm_mem_dontneed,
	.hugepage = tm_mem_hugepage,
	.nohugepage = tm_mem_nohugepage,
	.remap = tm_mem_remap,
	.extend = tm_mem_extend,
	.move = tm_mem_move,
	.map_hugetlb = tm_mem_map_hugetlb,
	.populate = tm_mem_populate_write,
	.collapse = tm_mem_collapse,
};

struct tm_zone tm_zone = {.os = &tm_zone_os_real};

enum {
	TABLE_GRANULES,
	TABLE_TAGS,
	TABLE_UNITS,
	TABLES,
};

/*
 * A part's steps come from a chunk of addresses set aside for it, so that they adjoin: one free run,
 * one mapping. The next chunk is only as long as the last one, since its table entries count where
 * addresses are limited, and are resident where all memory is locked (H59).
 */
#define CHUNK_MIN_SPAN_BYTES ((size_t)64 << 20)
#define CHUNK_MIN_BYTES ((size_t)512 << 20)
#define HOLE_LOOKS 64
#define CHUNK_MAX_BYTES ((size_t)1 << 30)
#define STEP_SHARE 32u /* of what the process may map: the longest step beyond the need */

/* The front and the parts' chunks, under a lock. */
static struct {
	struct tm_lock lock;
	struct {
		size_t start;
		size_t at; /* where the next step goes */
		size_t end;
		uint32_t hole; /* list of unmapped units below `at`: first unit + 1; 0: none */
	} chunk[TM_PART_COUNT];
	size_t front;   /* bytes; tm_zone.len is its published copy */
	size_t covered; /* zone bytes that the tables cover */
} front = {.lock = TM_LOCK_INIT(TM_RANK_ZONE)};

/* Forget a part's chunk and holes: only addresses are lost. */
static void drop_chunk(enum tm_part part)
{
	front.chunk[part].start = 0;
	front.chunk[part].at = 0;
	front.chunk[part].end = 0;
	front.chunk[part].hole = 0;
}

static void front_lock(void)
{
	if (TM_LIKELY(tm_lock_acquire(&front.lock) != TM_LOCK_STOLEN))
		return;
	/* a chunk may be half initialised, or a step be mapped but not recorded */
	for (int part = 0; part < TM_PART_COUNT; part++)
		drop_chunk((enum tm_part)part);
}

/* A table's entries for `bytes` bytes of the zone take bytes >> shift. */
static struct table {
	unsigned int shift; /* [const] */
	size_t mapped;      /* [front lock] bytes */
	size_t begun; /* [front lock] more than `mapped`: a thread vanished while mapping so far */
} tables[TABLES] = {
	[TABLE_GRANULES] = {.shift = TM_GRANULE_SHIFT - 6},
	[TABLE_TAGS] = {.shift = TM_PAGE_SHIFT - 2},
	[TABLE_UNITS] = {.shift = TM_UNIT_SHIFT - 5},
};

_Static_assert(sizeof(struct tm_granule) == 1 << 6, "a granule's entry");
_Static_assert(sizeof(struct tm_unit) == 1 << 5, "a unit's entry");

static void *table_addr(int table)
{
	switch (table) {
	case TABLE_GRANULES: return tm_zone.granules;
	case TABLE_TAGS: return tm_zone.tags;
	default: return tm_zone.units;
	}
}

static int map_table(int table, size_t zone_bytes)
{
	struct table *t = &tables[table];
	size_t want = tm_bits_align_up(zone_bytes >> t->shift,
				       tm_zone_is_scanty() ? tm_proc_page_bytes() : TABLE_GRAIN);
	char *from = (char *)table_addr(table) + t->mapped;
	bool again = t->begun > t->mapped;
	int err;

	if (want <= t->mapped)
		return 0;
	/* lost by a fork: unused, but perhaps mapped already, even beyond what is wanted now */
	want = tm_bits_max(want, t->begun);
	t->begun = want;
	TM_SIGNAL_FENCE();
	err = again ? tm_zone.os->map_fixed(from, want - t->mapped, ZONE_PROT)
		    : tm_zone.os->map_at(from, want - t->mapped, ZONE_PROT);
	TM_SIGNAL_FENCE();
	if (err)
		t->begun = t->mapped;
	else
		t->mapped = want;
	return err;
}

/* Extend the tables to cover `bytes` of the zone. What was mapped before a failure is kept. */
static TM_AT_START_CODE int cover(size_t bytes)
{
	size_t step = tm_zone_is_scanty() ? TABLE_STEP_SCANTY : TABLE_STEP;
	size_t want = tm_bits_min(tm_bits_align_up(bytes, step), tm_zone.limit);

	if (bytes <= front.covered)
		return 0;
	for (int i = 0; i < TABLES; i++) {
		int err = map_table(i, want);

		if (err)
			return err;
	}
	front.covered = want;
	return 0;
}

/*
 * Windows to try, in 64ths of the address space. The first lies above the shadow memory of the
 * address sanitizer and below the place where mmap starts when the stack is unlimited (a third), far
 * from the program, its heap and the usual mmap area. The others serve tools that lend a smaller
 * address space, such as valgrind, and the thread sanitizer, which knows only its own ranges.
 */
struct window {
	uint64_t low;
	uint64_t high;
	size_t bytes;
};

static unsigned address_bits(void)
{
	uintptr_t stack = (uintptr_t)__builtin_frame_address(0);
	unsigned bits = 64 - (unsigned)__builtin_clzl(stack);

	return bits < 39 ? 47 : bits > 48 ? 48 : bits;
}

static TM_AT_START_CODE void reset_front(void)
{
	front.front = 0;
	front.covered = 0;
	for (int i = 0; i < TM_PART_COUNT; i++)
		drop_chunk((enum tm_part)i);
	for (int i = 0; i < TABLES; i++) {
		tables[i].mapped = 0;
		tables[i].begun = 0;
	}
}

static int try_window(const struct window *w)
{
	uint64_t room = (w->high - w->low - w->bytes - TABLES_BELOW) >> TM_UNIT_SHIFT;
	uint64_t random = 0;
	int err = -ENOMEM;

	for (int attempt = 0; attempt < 4; attempt++) {
		/* if this fails the address is guessable, which is better than no zone */
		(void)tm_sys_getrandom(&random, sizeof(random), 1 /* GRND_NONBLOCK */);
		tm_zone.base =
			(uintptr_t)(w->low + TABLES_BELOW + ((random % room) << TM_UNIT_SHIFT));
		tm_zone.granules = (struct tm_granule *)(tm_zone.base - 3 * TABLE_GAP);
		tm_zone.tags = (uint32_t *)(tm_zone.base - 2 * TABLE_GAP);
		tm_zone.units = (struct tm_unit *)(tm_zone.base - TABLE_GAP);
		tm_zone.limit = w->bytes;
		reset_front();
		err = cover(TM_UNIT_BYTES);
		if (err != -EEXIST)
			break;
	}
	return err;
}

/*
 * Units are 2 MiB, a huge page where the kernel's page is 4 KiB. With larger pages a huge page is
 * 32 or 512 MiB, too much for one part, so none are used.
 */
static enum tm_huge_mode read_huge(void)
{
	char word[16];

	if (tm_proc_page_bytes() != TM_PAGE_BYTES ||
	    tm_proc_read_choice("/sys/kernel/mm/transparent_hugepage/enabled", word, sizeof(word)) <
		    0)
		return TM_THP_NEVER;
	return word[0] == 'a' ? TM_THP_ALWAYS : word[0] == 'm' ? TM_THP_MADVISE : TM_THP_NEVER;
}

TM_AT_START_CODE int tm_zone_init(void)
{
	uint64_t part = (uint64_t)1 << (address_bits() - 6);
	const struct window windows[] = {
		{11 * part, 20 * part, tm_bits_min((size_t)1 << 40, 4 * part)},
		{(uint64_t)1 << 40, (uint64_t)8 << 40, (size_t)1 << 40},
		{(uint64_t)64 << 30, (uint64_t)120 << 30, (size_t)32 << 30},
	};
	size_t first = 0;

	tm_lock_register(&front.lock);
	tm_zone.huge = read_huge();
	tm_zone.room = tm_proc_memory_limit();
#ifdef __SANITIZE_THREAD__
	first = 2;
#endif
	for (size_t i = first; i < TM_ARRAY_LEN(windows); i++)
		if (try_window(&windows[i]) == 0)
			return 0;
	tm_zone.base = 0;
	tm_zone.limit = 0;
	return -ENOMEM;
}

void tm_zone_clear(void)
{
	if (!tm_zone.limit)
		return;
	(void)tm_mem_unmap((void *)tm_zone.base, tm_zone.limit);
	(void)tm_mem_unmap(tm_zone.granules, TABLES_BELOW);
	tm_zone = (struct tm_zone){
		.os = tm_zone.os, .huge = tm_zone.huge, .hugetlb_shift = tm_zone.hugetlb_shift};
	reset_front();
}

static void mark_units(size_t from, size_t bytes, uint8_t part)
{
	struct tm_unit *u = tm_zone.units + (from >> TM_UNIT_SHIFT);

	for (size_t n = bytes >> TM_UNIT_SHIFT; n; n--, u++)
		__atomic_store_n(&u->part, part, __ATOMIC_RELAXED);
}

/* Reset units of which nothing is mapped any more. Others may read their part meanwhile. */
static void forget_units(size_t from, size_t bytes)
{
	struct tm_unit *u = tm_zone.units + (from >> TM_UNIT_SHIFT);

	mark_units(from, bytes, TM_PART_NONE);
	for (size_t n = bytes >> TM_UNIT_SHIFT; n; n--, u++) {
		u->fresh = 0;
		u->flags = 0;
		u->stand = TM_HUGE_UNMAPPED;
		u->tainted = 0;
	}
}

/* Set addresses aside at the front. */
static int reserve(size_t bytes, uint8_t part)
{
	if (bytes > tm_zone.limit - front.front || cover(front.front + bytes))
		return -ENOMEM;
	mark_units(front.front, bytes, part);
	front.front += bytes;
	/* release: the tables' mappings and the units' parts come first */
	__atomic_store_n(&tm_zone.len, front.front, __ATOMIC_RELEASE);
	return 0;
}

/* Make room for a step of a part: in its chunk, by extending that, or in a new chunk. */
static int make_room(enum tm_part part, size_t need)
{
	size_t have = front.chunk[part].end - front.chunk[part].at;
	size_t size = front.chunk[part].end - front.chunk[part].start;
	bool last = front.chunk[part].end == front.front && size != 0;
	size_t from = front.front;
	size_t more = tm_bits_align_up(last ? need - have : need, TM_UNIT_BYTES);

	if (have >= need)
		return 0;
	/* near the end of the zone or an address limit, no more than is needed */
	size = tm_bits_clamp(size, part == TM_PART_SPAN ? CHUNK_MIN_SPAN_BYTES : CHUNK_MIN_BYTES,
			     CHUNK_MAX_BYTES);
	size = tm_bits_min(size, tm_bits_align_down(tm_zone_room(), TM_UNIT_BYTES));
	if (reserve(tm_bits_max(more, size), TM_PART_NONE) && reserve(more, TM_PART_NONE))
		return -ENOMEM;
	if (!last) {
		front.chunk[part].start = from;
		front.chunk[part].at = from;
	}
	front.chunk[part].end = front.front;
	return 0;
}

/* Another mapping of the process is in the way: skip addresses, twice as many each time. */
static void skip(enum tm_part part, size_t *step)
{
	size_t at = tm_bits_align_up(front.chunk[part].at, TM_UNIT_BYTES);
	size_t bytes = tm_bits_min(*step, front.chunk[part].end - at);

	*step *= 2;
	mark_units(at, bytes, TM_PART_FOREIGN);
	front.chunk[part].at = at + bytes;
}

/* Give newly mapped units to a part. They count as used until the caller makes them free. */
static void begin_units(size_t from, size_t bytes, uint8_t part)
{
	size_t first = tm_bits_align_up(from, TM_UNIT_BYTES);
	size_t end = tm_bits_align_up(from + bytes, TM_UNIT_BYTES);

	mark_units(first, end - first, part);
	for (size_t at = first; at < end; at += TM_UNIT_BYTES)
		tm_zone.units[at >> TM_UNIT_SHIFT].used = UINT32_MAX;
}

/* Length to try after a refusal: half in whole units, at last the need itself; 0: give up. */
static size_t less(size_t at, size_t bytes, size_t need)
{
	size_t whole = tm_bits_align_up(at + need, TM_UNIT_BYTES) - at;
	size_t half = tm_bits_max(tm_bits_align_down(at + bytes / 2, TM_UNIT_BYTES), at) - at;

	if (bytes > whole)
		return tm_bits_max(half, whole);
	return bytes > need ? need : 0;
}

static void count_pool_empty(size_t bytes)
{
	atomic_fetch_add_explicit(&tm_huge.pool_empty, bytes / TM_UNIT_BYTES, memory_order_relaxed);
}

static void mark_hugetlb(size_t from, size_t bytes, enum tm_huge_step step)
{
	tm_huge_stand((uint32_t)(from >> TM_UNIT_SHIFT), bytes / TM_UNIT_BYTES, step);
	for (size_t at = from; at < from + bytes; at += TM_UNIT_BYTES)
		tm_zone.units[at >> TM_UNIT_SHIFT].flags |= TM_UNIT_HUGETLB;
}

/* Map a step: from the hugetlb pool if that was asked for, else ordinary memory. */
static int map_step(enum tm_part part, size_t at, size_t bytes)
{
	void *addr = (void *)(tm_zone.base + at);

	if (TM_UNLIKELY(tm_zone.hugetlb_shift != 0) && part == TM_PART_PERSISTENT &&
	    ((at | bytes) & (TM_UNIT_BYTES - 1)) == 0) {
		if (tm_zone.os->map_hugetlb(addr, bytes, TM_UNIT_SHIFT) == 0) {
			mark_hugetlb(at, bytes, TM_HUGE_ON_2M);
			return 0;
		}
		count_pool_empty(bytes);
	}
	return tm_zone.os->map_at(addr, bytes, ZONE_PROT);
}

/* A step of whole 1 GiB pages, aligned; addresses skipped for that are lost. 0: there are none. */
static size_t step_giant(enum tm_part part, size_t need, uint32_t *ret_page)
{
	size_t bytes = tm_bits_align_up(need, TM_GIANT_BYTES);
	size_t at, from;

	if (need < TM_GIANT_BYTES / 2 || make_room(part, bytes + TM_GIANT_BYTES))
		return 0;
	from = front.chunk[part].at;
	at = tm_bits_align_up(tm_zone.base + from, TM_GIANT_BYTES) - tm_zone.base;
	if (tm_zone.os->map_hugetlb((void *)(tm_zone.base + at), bytes, TM_GIANT_SHIFT)) {
		count_pool_empty(bytes);
		return 0;
	}
	from = tm_bits_align_up(from, TM_UNIT_BYTES);
	mark_units(from, at - from, TM_PART_FOREIGN);
	mark_hugetlb(at, bytes, TM_HUGE_ON_1G);
	*ret_page = (uint32_t)(at >> TM_PAGE_SHIFT);
	begin_units(at, bytes, (uint8_t)part);
	front.chunk[part].at = at + bytes;
	return bytes;
}

static size_t step_locked(enum tm_part part, size_t need, size_t want, uint32_t *ret_page)
{
	size_t share = tm_bits_align_down(tm_zone_room() / STEP_SHARE, TM_GRANULE_BYTES);
	size_t step = TM_UNIT_BYTES, bytes = want, at;

	for (;;) {
		int err;

		if (make_room(part, need))
			return 0;
		at = front.chunk[part].at;
		bytes = tm_bits_min(bytes, front.chunk[part].end - at);
		bytes = tm_bits_max(need, tm_bits_min(bytes, share));
		if (bytes > need && share >= TM_UNIT_BYTES)
			bytes = tm_bits_min(tm_bits_align_up(at + bytes, TM_UNIT_BYTES),
					    front.chunk[part].end) -
				at;
		err = map_step(part, at, bytes);
		if (!err)
			break;
		bytes = less(at, bytes, need);
		if (bytes)
			continue;
		if (err != -EEXIST)
			return 0;
		skip(part, &step);
		bytes = want;
	}
	*ret_page = (uint32_t)(at >> TM_PAGE_SHIFT);
	begin_units(at, bytes, (uint8_t)part);
	front.chunk[part].at += bytes;
	return bytes;
}

/* Record a hole: its first unit holds its length in units (tick) and the next hole (next). */
static void push_hole(enum tm_part part, size_t from, size_t bytes)
{
	struct tm_unit *u = &tm_zone.units[from >> TM_UNIT_SHIFT];

	u->tick = (uint32_t)(bytes >> TM_UNIT_SHIFT);
	u->next = front.chunk[part].hole;
	front.chunk[part].hole = (uint32_t)(from >> TM_UNIT_SHIFT) + 1;
}

/* Map a hole of the part again, or its first units, if one is long enough. Returns the bytes. */
static size_t fill_hole(enum tm_part part, size_t need, size_t want, uint32_t *ret_page)
{
	uint32_t *link = &front.chunk[part].hole;

	for (int looks = 0; *link && looks < HOLE_LOOKS; looks++) {
		uint32_t at = *link - 1;
		struct tm_unit *u = &tm_zone.units[at];
		size_t from = (size_t)at << TM_UNIT_SHIFT;
		size_t length = (size_t)u->tick << TM_UNIT_SHIFT;
		size_t bytes = tm_bits_min(length, tm_bits_align_up(want, TM_UNIT_BYTES));

		if (length < need) {
			link = &u->next;
			continue;
		}
		if (tm_zone.os->map_at((void *)(tm_zone.base + from), bytes, ZONE_PROT))
			return 0;
		*link = u->next;
		if (length > bytes)
			push_hole(part, from + bytes, length - bytes);
		*ret_page = (uint32_t)(from >> TM_PAGE_SHIFT);
		begin_units(from, bytes, (uint8_t)part);
		return bytes;
	}
	return 0;
}

size_t tm_zone_step(enum tm_part part, size_t need_bytes, size_t want_bytes, uint32_t *ret_page)
{
	size_t bytes = 0;

	front_lock();
	want_bytes = tm_bits_align_up(tm_bits_max(need_bytes, want_bytes), TM_UNIT_BYTES);
	if (TM_UNLIKELY(tm_zone.hugetlb_shift == TM_GIANT_SHIFT) && part == TM_PART_PERSISTENT)
		bytes = step_giant(part, need_bytes, ret_page);
	if (!bytes && TM_UNLIKELY(front.chunk[part].hole))
		bytes = fill_hole(part, need_bytes, want_bytes, ret_page);
	if (!bytes)
		bytes = step_locked(part, need_bytes, want_bytes, ret_page);
	tm_lock_release(&front.lock);
	return bytes;
}

int tm_zone_unmap(enum tm_part part, uint32_t page, size_t pages)
{
	size_t from = (size_t)page << TM_PAGE_SHIFT;
	size_t bytes = pages << TM_PAGE_SHIFT;
	int err;

	front_lock();
	err = tm_zone.os->unmap((void *)(tm_zone.base + from), bytes);
	if (!err) {
		forget_units(from, bytes);
		if (front.chunk[part].at == from + bytes && from >= front.chunk[part].start)
			front.chunk[part].at = from;
		else
			push_hole(part, from, bytes);
	}
	tm_lock_release(&front.lock);
	return err;
}

uint32_t tm_zone_next(enum tm_part part)
{
	return (uint32_t)(front.chunk[part].at >> TM_PAGE_SHIFT);
}

void tm_zone_forsake(enum tm_part part)
{
	front_lock();
	drop_chunk(part);
	tm_lock_release(&front.lock);
}

size_t tm_zone_reserve(enum tm_part part, size_t bytes, uint32_t *ret_page)
{
	size_t got = 0;

	front_lock();
	if (reserve(bytes, (uint8_t)part) == 0) {
		*ret_page = (uint32_t)((front.front - bytes) >> TM_PAGE_SHIFT);
		got = bytes;
	}
	tm_lock_release(&front.lock);
	return got;
}

void tm_zone_taint(const void *addr, size_t bytes)
{
	size_t len = __atomic_load_n(&tm_zone.len, __ATOMIC_ACQUIRE);
	size_t from = tm_zone_offset(addr);
	size_t to;

	if (__builtin_add_overflow((uintptr_t)addr, bytes, &to))
		return;
	/* a range that begins below the zone would wrap around: cut it to the zone */
	if ((uintptr_t)addr < tm_zone.base)
		from = 0;
	to = to > tm_zone.base ? to - tm_zone.base : 0;
	to = tm_bits_min(to, len);
	if (to > from)
		__atomic_store_n(&tm_zone.taints, 1, __ATOMIC_RELAXED);
	for (size_t at = from & ~(TM_UNIT_BYTES - 1); at < to; at += TM_UNIT_BYTES)
		__atomic_store_n(&tm_zone.units[at >> TM_UNIT_SHIFT].tainted, 1, __ATOMIC_RELAXED);
}

bool tm_zone_is_tainted(uint32_t page, size_t pages)
{
	size_t last = (page + pages - 1) / TM_UNIT_PAGES;

	if (TM_LIKELY(!__atomic_load_n(&tm_zone.taints, __ATOMIC_RELAXED)))
		return false;
	for (size_t at = page / TM_UNIT_PAGES; at <= last; at++)
		if (__atomic_load_n(&tm_zone.units[at].tainted, __ATOMIC_RELAXED))
			return true;
	return false;
}

int tm_zone_cleanse(uint32_t page, size_t pages)
{
	size_t bytes = pages << TM_PAGE_SHIFT;
	void *addr = tm_zone_page_addr(page);
	int err = tm_zone.os->map_fixed(addr, bytes, ZONE_PROT);

	if (!err)
		tm_numa_fresh((enum tm_part)tm_zone_unit(page)->part, page, pages);
	if (!err && (tm_zone_unit(page)->flags & TM_UNIT_HUGE))
		(void)tm_zone.os->hugepage(addr, bytes);
	else if (!err && tm_zone.huge != TM_THP_NEVER && tm_zone.huge != TM_THP_MADVISE)
		(void)tm_zone.os->nohugepage(addr, bytes);
	return err;
}

const char *tm_zone_check(void)
{
	size_t len = __atomic_load_n(&tm_zone.len, __ATOMIC_ACQUIRE);

	if ((tm_zone.base | len | tm_zone.limit) & (TM_UNIT_BYTES - 1))
		return "zone: base, length and limit are whole units";
	if (len > tm_zone.limit || len > front.covered)
		return "zone: tables cover everything below the front";
	for (size_t i = 0; i < len >> TM_UNIT_SHIFT; i++) {
		const struct tm_unit *u = &tm_zone.units[i];

		if (u->part >= TM_PART_COUNT && u->part != TM_PART_FOREIGN &&
		    u->part != TM_PART_NONE)
			return "zone: a unit below the front belongs to a part";
		if (u->part >= TM_PART_COUNT && u->used)
			return "zone: skipped units hold nothing";
	}
	return NULL;
}
