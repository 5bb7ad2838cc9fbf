/* SPDX-License-Identifier: MIT */
/*
 * zone: the window of addresses that holds everything this library hands out. Nothing is mapped in
 * it at first. Addresses are set aside linearly at a front, in larger chunks for parts that have
 * more, and mapped within those in steps of whole 2 MiB units. Below the window's base lie three
 * flat tables, mapped as the front advances: granules (the page map), page tags (extent.c) and
 * units.
 *
 * Calls os/mem only. tm_zone_step and tm_zone_reserve take the zone's lock, which ranks after the
 * locks of the parts. Lookups need no lock: len is published after the tables below it are mapped.
 *
 * Invariants: base and len are multiples of 2 MiB; the tables cover [0, len); the part of a unit
 * never changes while memory of it is handed out. Checker: tm_zone_check.
 */
#ifndef TM_HEAP_ZONE_H
#define TM_HEAP_ZONE_H

#include "shim/heap/granule.h"

enum tm_part {
	TM_PART_SPAN,       /* spans of slots up to 64 KiB, of all tiers */
	TM_PART_LARGE,      /* blocks above 64 KiB, of the session tier */
	TM_PART_GROW,       /* blocks that realloc grew past 1 MiB */
	TM_PART_PERSISTENT, /* blocks above 64 KiB of the persistent tier */
	TM_PART_TEMPORARY,  /* blocks above 64 KiB of the temporary tier */
	TM_PART_COUNT,
	TM_PART_FOREIGN = 254, /* skipped: another mapping of the process lies there, or lost */
	TM_PART_NONE = 255,    /* set aside, not mapped yet */
};

enum tm_unit_flag {
	TM_UNIT_HUGE = 1, /* MADV_HUGEPAGE was given */
	TM_UNIT_KEPT = 4, /* [part lock] a purge failed: not tried again until the unit was used */
	TM_UNIT_LISTED = 8,   /* [part lock] on one of the part's lists of units with idle memory */
	TM_UNIT_TRIED = 32,   /* [part lock] collapse.c examined it since it was last purged */
	TM_UNIT_HUGETLB = 16, /* pages of a hugetlb pool, never given back, see huge.h */
};

#define TM_UNIT_PAGES ((uint32_t)(TM_UNIT_BYTES / TM_PAGE_BYTES))
#define TM_UNIT_GRANULES ((uint32_t)(TM_UNIT_BYTES / TM_GRANULE_BYTES))
#define TM_GRANULE_PAGES ((uint32_t)(TM_GRANULE_BYTES / TM_PAGE_BYTES))

/*
 * One per 2 MiB. A page is known to be zero if its granule is not in `touched`, or if it lies at or
 * above `fresh`. Both are reset only after a purge that the kernel confirmed.
 */
struct tm_unit {
	uint32_t used; /* [part lock] bit per granule of which a page is handed out */
	/*
	 * [part lock] bit per granule that was handed out, or lies in a huge page with one that was,
	 * since it was last purged
	 */
	uint32_t touched;
	uint16_t fresh; /* [part lock] pages from here on were not handed out since then */
	uint8_t part;   /* [part lock] enum tm_part */
	uint8_t flags;  /* [part lock] enum tm_unit_flag */
	uint32_t tick;  /* [part lock] purge tick when memory of it last became free */
	uint32_t next;  /* [part lock] links of the list of idle units, oldest first */
	uint32_t prev;
	uint32_t tainted; /* [atomic] the program advised, locked or protected memory here (H93) */
	/* [part lock] enum tm_huge_step: the pages it is on, and why */
	uint8_t stand;
	uint8_t looks; /* [part lock] of collapse.c that found it not full since it was last purged */
	uint8_t busy; /* [part lock] collapse.c's ticks in a row that found it nearly all in use */
	uint8_t spare;
};

/* System calls of the zone; tests put a fake kernel here. */
struct tm_zone_os {
	int (*map_at)(void *addr, size_t bytes, int prot);
	int (*map_fixed)(void *addr, size_t bytes, int prot);
	int (*unmap)(void *addr, size_t bytes);
	int (*dontneed)(void *addr, size_t bytes);
	int (*hugepage)(void *addr, size_t bytes);
	int (*nohugepage)(void *addr, size_t bytes);
	void *(*remap)(void *old, size_t old_bytes, size_t new_bytes, void *fixed_at);
	int (*extend)(void *addr, size_t old_bytes, size_t new_bytes);
	int (*move)(void *from, size_t bytes, void *to);
	int (*map_hugetlb)(void *addr, size_t bytes, unsigned page_shift);
	int (*populate)(void *addr, size_t bytes); /* NULL: not available */
	int (*collapse)(void *addr, size_t bytes); /* NULL: not available */
};

/* Transparent huge pages: what the system allows and the user wants. */
enum tm_huge_mode {
	TM_THP_NEVER,
	TM_THP_MADVISE, /* the kernel gives them where advised */
	TM_THP_ALWAYS,  /* the kernel gives them everywhere: sparse memory has to decline */
	TM_THP_DECLINE, /* likewise, and the user wants none */
	TM_THP_EAGER,   /* the user wants them also where memory is sparse */
};

struct tm_zone {
	uintptr_t base;              /* [const] */
	size_t len;                  /* [atomic] bytes from base to the front */
	struct tm_granule *granules; /* [const] */
	uint32_t *tags;              /* [const] a word per page, see extent.c */
	struct tm_unit *units;       /* [const] */
	size_t limit;                /* [const] bytes of the window */
	size_t room;            /* [atomic] bytes that the process may map, as far as is known */
	uint32_t taints;        /* [atomic] not 0: some unit may be tainted */
	enum tm_huge_mode huge; /* [const after boot] what init found; boot may lower it */
	unsigned hugetlb_shift; /* [const after boot] 21, 30: pages of the persistent part; or 0 */
	const struct tm_zone_os *os; /* [const] */
};

extern TM_HIDDEN struct tm_zone tm_zone;

/* Bytes that the process may map; steps and chunks are kept in proportion. */
TM_INLINE size_t tm_zone_room(void)
{
	return __atomic_load_n(&tm_zone.room, __ATOMIC_RELAXED);
}

/* Whether it is so little that memory for our own structures is mapped in small pieces, too. */
TM_INLINE bool tm_zone_is_scanty(void)
{
	return TM_UNLIKELY(tm_zone_room() < (size_t)64 << 20);
}

/* Lower that to `bytes`. */
TM_INLINE void tm_zone_limit_room(size_t bytes)
{
	if (bytes < tm_zone_room())
		__atomic_store_n(&tm_zone.room, bytes, __ATOMIC_RELAXED);
}

/*
 * The first granule from this one on whose unit belongs to a part. Entries of addresses that are
 * only set aside must not be read, since that would cost a page fault per page of the table.
 */
TM_INLINE size_t tm_zone_pass(size_t granule, size_t granules)
{
	while (granule < granules &&
	       __atomic_load_n(&tm_zone.units[granule / TM_UNIT_GRANULES].part, __ATOMIC_RELAXED) >=
		       TM_PART_COUNT)
		granule = (granule / TM_UNIT_GRANULES + 1) * TM_UNIT_GRANULES;
	return granule;
}

extern TM_HIDDEN const struct tm_zone_os tm_zone_os_real;

/* Choose the window and map the first tables. 0, or -ENOMEM if no window is free. */
int tm_zone_init(void);

/* Unmap and reset everything; tests only. */
void tm_zone_clear(void);

/*
 * Map fresh zero memory for a part: at least need_bytes (a multiple of 64 KiB), preferably
 * want_bytes, in whole units if possible. Returns its length and start, or 0. The units count as
 * used until the caller, who holds the part's lock, makes them free (tm_unit_give).
 */
size_t tm_zone_step(enum tm_part part, size_t need_bytes, size_t want_bytes, uint32_t *ret_page);

/*
 * Unmap whole unused units, which the caller, who holds the part's lock, has cut out of the free
 * memory; a later step maps them again. 0 or -errno.
 */
int tm_zone_unmap(enum tm_part part, uint32_t page, size_t pages);

/*
 * The page where the part's next step would begin if there is room. The caller holds the part's
 * lock.
 */
uint32_t tm_zone_next(enum tm_part part);

/*
 * Drop the part's chunk: its next step begins at the front, and nothing below is mapped for it
 * again.
 */
void tm_zone_forsake(enum tm_part part);

/*
 * Set addresses aside at the front without mapping them; their granule entries can be used. 0 on
 * failure.
 */
size_t tm_zone_reserve(enum tm_part part, size_t bytes, uint32_t *ret_page);

/* The program changed how the kernel treats these addresses (madvise, mlock, mbind, mprotect). */
void tm_zone_taint(const void *addr, size_t bytes);

/* True if it did so in any unit of these pages. */
bool tm_zone_is_tainted(uint32_t page, size_t pages);

/* Map the pages anew, which undoes that; they are zero afterwards. 0 or -errno. */
int tm_zone_cleanse(uint32_t page, size_t pages);

/* Check the units: NULL, or the invariant that is broken. */
const char *tm_zone_check(void);

TM_INLINE size_t tm_zone_offset(const void *p)
{
	return (uintptr_t)p - tm_zone.base;
}

/* True for addresses below the front; granules of foreign mappings in the zone have no owner. */
TM_INLINE bool tm_zone_contains(const void *p)
{
	/* a plain load: whoever knows p has synchronised with its allocation, which saw len grow */
	return tm_zone_offset(p) < tm_zone.len;
}

TM_INLINE struct tm_granule *tm_zone_granule(const void *p)
{
	return tm_zone.granules + (tm_zone_offset(p) >> TM_GRANULE_SHIFT);
}

TM_INLINE uint32_t tm_zone_page(const void *p)
{
	return (uint32_t)(tm_zone_offset(p) >> TM_PAGE_SHIFT);
}

TM_INLINE void *tm_zone_page_addr(uint32_t page)
{
	return (void *)(tm_zone.base + ((uintptr_t)page << TM_PAGE_SHIFT));
}

TM_INLINE struct tm_unit *tm_zone_unit(uint32_t page)
{
	return tm_zone.units + (page >> (TM_UNIT_SHIFT - TM_PAGE_SHIFT));
}

#endif
