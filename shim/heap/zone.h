/* SPDX-License-Identifier: MIT */
/*
 * zone: the window of addresses in which everything lives that this library hands out. Nothing is
 * mapped in it at first; addresses are set aside linearly at a front, more at a time the more a part
 * has, and mapped within that in steps of whole 2 MiB units.
 * Apart from it, below its base, lie three flat tables that are mapped as the front advances:
 * granules (the page map), page tags (extent.c) and units.
 *
 * Calls os/mem only. tm_zone_step and tm_zone_reserve take the zone's lock, which ranks after the
 * locks of the parts. Lookups need no lock: len is published after the tables below it are mapped.
 *
 * Invariants: base, len are multiples of 2 MiB; tables cover [0, len); the part of a unit never
 * changes while memory of it is handed out. Checker: tm_zone_check.
 */
#ifndef TM_HEAP_ZONE_H
#define TM_HEAP_ZONE_H

#include "shim/heap/granule.h"

/* Loops run to TM_PART_COUNT. */
enum tm_part {
	TM_PART_SPAN,       /* spans of slots up to 64 KiB, of all tiers */
	TM_PART_LARGE,      /* blocks above 64 KiB, of the session tier */
	TM_PART_GROW,       /* blocks that realloc grew past 1 MiB */
	TM_PART_PERSISTENT, /* blocks above 64 KiB of the persistent tier */
	TM_PART_TEMPORARY,  /* and of the temporary one */
	TM_PART_COUNT,
	TM_PART_FOREIGN = 254, /* skipped: somebody else's mapping, or lost */
	TM_PART_NONE = 255,    /* set aside, not mapped yet */
};

enum tm_unit_flag {
	TM_UNIT_HUGE = 1,     /* MADV_HUGEPAGE was given */
	TM_UNIT_KEPT = 4,     /* [part lock] a purge failed: not tried again until it was in use */
	TM_UNIT_LISTED = 8,   /* [part lock] on the part's list of units with memory to give back */
	TM_UNIT_TRIED = 32,   /* [part lock] collapse.c looked at it since it was given back */
	TM_UNIT_HUGETLB = 16, /* pages of a hugetlb pool: they are never given back, see huge.h */
};

#define TM_UNIT_PAGES ((uint32_t)(TM_UNIT_BYTES / TM_PAGE_BYTES))
#define TM_UNIT_GRANULES ((uint32_t)(TM_UNIT_BYTES / TM_GRANULE_BYTES))
#define TM_GRANULE_PAGES ((uint32_t)(TM_GRANULE_BYTES / TM_PAGE_BYTES))

/*
 * One per 2 MiB. A page is known to be zero if its granule is not in `touched` or if it lies at or
 * above `fresh`. Both are reset only by a purge that the kernel confirmed.
 */
struct tm_unit {
	uint32_t used;    /* [part lock] granules of which any page is handed out */
	uint32_t touched; /* [part lock] granules handed out since they were last given back */
	uint16_t fresh;   /* [part lock] pages from here on were never handed out since then */
	uint8_t part;     /* [part lock] enum tm_part */
	uint8_t flags;    /* [part lock] enum tm_unit_flag */
	uint32_t tick;    /* [part lock] when memory of it became free last */
	uint32_t next;    /* [part lock] list of units with memory to give back, oldest first */
	uint32_t prev;
	uint32_t tainted; /* [atomic] the program gave advice, a lock or a policy here (H93) */
	uint8_t stand; /* [part lock] enum tm_huge_step: the pages it is on, and why; see huge.h */
	uint8_t spare[3];
};

/* System calls of the zone; tests put a faulty kernel here. */
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
	int (*populate)(void *addr, size_t bytes); /* NULL: not to be had */
	int (*collapse)(void *addr, size_t bytes); /* likewise */
};

/* Transparent huge pages as the system allows them, and whether the user wants them. */
enum tm_huge_mode {
	TM_THP_NEVER,
	TM_THP_MADVISE, /* the kernel gives them where they are asked for */
	TM_THP_ALWAYS,  /* the kernel gives them everywhere: sparse parts have to decline */
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
	size_t room;                 /* [atomic] what the process may map, as far as is known */
	uint32_t taints;             /* [atomic] not 0: some unit may be tainted */
	enum tm_huge_mode huge;      /* [const after boot] what init found; boot may lower it */
	unsigned hugetlb_shift; /* [const after boot] 21, 30: pages of the persistent part; or 0 */
	const struct tm_zone_os *os; /* [const] */
};

extern TM_HIDDEN struct tm_zone tm_zone;

/* What the process may map: steps and chunks are to be in proportion. */
TM_INLINE size_t tm_zone_room(void)
{
	return __atomic_load_n(&tm_zone.room, __ATOMIC_RELAXED);
}

/* From now on no more than this. */
TM_INLINE void tm_zone_limit_room(size_t bytes)
{
	if (bytes < tm_zone_room())
		__atomic_store_n(&tm_zone.room, bytes, __ATOMIC_RELAXED);
}

/*
 * This granule, or the first behind it whose unit belongs to a part: of addresses that are only set
 * aside nobody reads the table, which would be a page fault per page.
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

/* Choose the window and map the first tables. 0, or -ENOMEM where no window could be had. */
int tm_zone_init(void);

/* Forget everything and unmap it; tests only. */
void tm_zone_clear(void);

/*
 * Map fresh zero memory for a part, at least need_bytes (a multiple of 64 KiB) and preferably
 * want_bytes, in whole units if they can be had. Returns its length and start, or 0. Its units count
 * as used until the caller, who holds the part's lock, makes it free (tm_unit_give).
 */
size_t tm_zone_step(enum tm_part part, size_t need_bytes, size_t want_bytes, uint32_t *ret_page);

/*
 * Unmap whole units that nobody uses and that the caller, who holds the part's lock, has cut out of
 * the free memory; a later step maps them again. 0 or -errno.
 */
int tm_zone_unmap(enum tm_part part, uint32_t page, size_t pages);

/* Where the part's next step would begin if there is room; the caller holds the part's lock. */
uint32_t tm_zone_next(enum tm_part part);

/* The part's next step begins at the front: nothing below is mapped for it any more. */
void tm_zone_forsake(enum tm_part part);

/* Set addresses aside at the front without mapping them; granule entries work. 0 on failure. */
size_t tm_zone_reserve(enum tm_part part, size_t bytes, uint32_t *ret_page);

/* The program changed the kernel's view of these addresses (madvise, mlock, mbind, mprotect). */
void tm_zone_taint(const void *addr, size_t bytes);

/* True where the program did so to any unit of these pages. */
bool tm_zone_is_tainted(uint32_t page, size_t pages);

/* Map the pages anew, without what the program did to them; zero then. 0 or -errno. */
int tm_zone_cleanse(uint32_t page, size_t pages);

/* Walks the units; NULL, or the invariant that is broken. */
const char *tm_zone_check(void);

TM_INLINE size_t tm_zone_offset(const void *p)
{
	return (uintptr_t)p - tm_zone.base;
}

/* True for addresses below the front; foreign mappings in the zone have granules without owner. */
TM_INLINE bool tm_zone_contains(const void *p)
{
	/* A plain load: whoever knows p has synchronised with its allocation, which saw len grow. */
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
