/* SPDX-License-Identifier: MIT */
#include "shim/ledger/census.h"

#include <errno.h>

#include "shim/base/bits.h"
#include "shim/base/hash.h"
#include "shim/heap/account.h"
#include "shim/heap/arena.h"
#include "shim/heap/heap.h"
#include "shim/heap/span.h"
#include "shim/heap/tier.h"
#include "shim/heap/zone.h"
#include "shim/ledger/ledger.h"
#include "shim/ledger/sizes.h"
#include "shim/os/mem.h"

/* Age in windows from which an entry's epoch is reset to "old". */
#define AGE_LIMIT 200u
#define SITES_BITS 14
#define SITES_MAX ((1u << SITES_BITS) - 1)
#define HASH_BITS (SITES_BITS + 1)

_Static_assert(TM_GRANULE_BYTES / 16 <= TM_CENSUS_SLICE_MOST - TM_CENSUS_SLICE,
	       "slots of the fullest span");

/* Work space of one census, unmapped at its end. */
struct scratch {
	struct tm_epoch_site site[SITES_MAX + 1];
	uint16_t by_key[1u << HASH_BITS]; /* index + 1 */
	uint32_t sites;
	uint16_t row_site[][TM_LEDGER_ROWS]; /* by heap and row */
};

static struct census {
	enum tm_census_kind kind;
	bool ended;
	struct tm_census_totals totals;
	struct scratch *scratch; /* NULL: totals alone */
	size_t scratch_bytes;
	uint32_t heaps;
	struct tm_heap *heap; /* the next one whose rows are mapped to sites; NULL: all are */
	uint32_t row;
	size_t granule; /* the next one */
	uint64_t taken; /* steps of this slice */
	uint64_t longest;
	uint8_t age[256]; /* of an entry's epoch, in windows, at most COHORTS - 1 */
	uint8_t ancient[256];
} census;

/* --- sites ------------------------------------------------------------------------------------ */

static uint16_t site_index(struct scratch *s, uint64_t key)
{
	size_t slot = tm_hash_slot(key, HASH_BITS);

	if (key == 0)
		return 0;
	for (;; slot = (slot + 1) % (1u << HASH_BITS)) {
		uint16_t index = s->by_key[slot];

		if (index != 0 && s->site[index].key == key)
			return index;
		if (index != 0)
			continue;
		if (s->sites == SITES_MAX)
			return 0;
		s->by_key[slot] = (uint16_t)++s->sites;
		s->site[s->sites].key = key;
		return (uint16_t)s->sites;
	}
}

static void map_row(struct census *c, const struct tm_heap *h, uint32_t n)
{
	const struct tm_row *row = tm_account_row((uintptr_t)h, n << 4);
	uint64_t objects = __atomic_load_n(&row->objects, __ATOMIC_RELAXED);
	uint16_t at;

	c->totals.births += objects;
	if (c->scratch == NULL || h->index >= c->heaps)
		return;
	at = site_index(c->scratch, (uint64_t)row->site | (uint64_t)row->height << 48);
	c->scratch->row_site[h->index][n] = at;
	c->scratch->site[at].objects += objects;
	c->scratch->site[at].bytes += __atomic_load_n(&row->bytes, __ATOMIC_RELAXED);
}

static void map_rows(struct census *c, uint64_t steps)
{
	while (c->heap != NULL && c->taken < steps) {
		if (c->row < __atomic_load_n(&c->heap->rows, __ATOMIC_ACQUIRE)) {
			map_row(c, c->heap, c->row++);
		} else {
			c->heap = c->heap->next;
			c->row = 0;
		}
		c->taken++;
	}
}

/* --- the walk --------------------------------------------------------------------------------- */

/* Compare and swap: if the slot is reused meanwhile, its new epoch stays. */
static void forget_age(uint8_t *epoch8, uint8_t seen)
{
	__atomic_compare_exchange_n(epoch8, &seen, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static void count(struct census *c, uint32_t heap, unsigned row, unsigned epoch8, uint64_t bytes)
{
	unsigned age = c->age[epoch8];
	struct tm_epoch_site *s;

	if (heap >= c->heaps)
		return;
	s = &c->scratch->site[c->scratch->row_site[heap][row]];
	s->size = s->live == 0 || s->size == bytes ? bytes : 0;
	s->live++;
	s->live_bytes += bytes;
	s->old += age >= TM_EPOCH_OLD_WINDOWS;
	s->cohort[age]++;
}

static void add_total(struct tm_census_totals *t, unsigned tier, uint64_t objects, uint64_t bytes,
		      uint64_t slots)
{
	t->objects[0] += objects;
	t->live_bytes[0] += bytes;
	t->slot_bytes[0] += slots;
	if (tier == 0 || tier >= TM_LEDGER_TIERS)
		return;
	t->objects[tier] += objects;
	t->live_bytes[tier] += bytes;
	t->slot_bytes[tier] += slots;
}

/*
 * The owner may release the span meanwhile: reads its fields once and validates them (see core.c).
 */
static void count_span(struct census *c, const struct tm_granule *head, unsigned tier)
{
	uint8_t *side = __atomic_load_n(&head->side, __ATOMIC_ACQUIRE);
	uint8_t klass = __atomic_load_n(&head->klass, __ATOMIC_ACQUIRE);
	uint16_t carved = __atomic_load_n(&head->carved, __ATOMIC_ACQUIRE);
	uint32_t room = __atomic_load_n(&head->nslots, __ATOMIC_ACQUIRE);
	uintptr_t owner = tm_granule_owner(head) & ~TM_OWNER_BITS;
	const struct tm_class_shape *shape = &tm_class_shape[klass < TM_LISTS ? klass : 0];
	bool small = klass < TM_SMALL_CLASSES;
	uint64_t objects = 0, bytes = 0, slots = 0;

	if (klass >= TM_LISTS || side == NULL || owner == 0 || room > shape->slots ||
	    carved > room || side != __atomic_load_n(&head->side, __ATOMIC_RELAXED) ||
	    klass != __atomic_load_n(&head->klass, __ATOMIC_RELAXED))
		return;
	uint32_t heap = ((const struct tm_heap *)owner)->index;
	c->taken += carved;
	for (uint32_t i = room - carved; i < room; i++) {
		uint8_t *e = side + i * (small ? 3u : 8u);
		uint64_t entry = 0;

		__builtin_memcpy(&entry, e, small ? 3 : 8);
		unsigned id = (unsigned)entry & 0xffff, epoch8 = (unsigned)(entry >> 16) & 0xff;
		if (id == TM_ENTRY_FREE)
			continue;
		uint64_t size = small ? tm_entry3_requested(shape->slot_bytes, id) : entry >> 24;
		objects++;
		bytes += size;
		if (!small)
			tm_sizes_census_slot(size, tier);
		slots += klass == TM_ARENA_CLASS ? tm_arena_room(size) : shape->slot_bytes;
		if (c->scratch == NULL)
			continue;
		count(c, heap, id >> 4, epoch8, size);
		if (c->ancient[epoch8])
			forget_age(e + 2, (uint8_t)epoch8);
	}
	add_total(&c->totals, tier, objects, bytes, slots);
}

/* The next granule where a span or block may begin. */
static size_t count_block(struct census *c, struct tm_granule *g, size_t index, unsigned tier)
{
	uint64_t pages = __atomic_load_n(&g->large.pages, __ATOMIC_RELAXED);
	uint64_t entry = __atomic_load_n(&g->large.account, __ATOMIC_RELAXED);
	uint64_t bytes = __atomic_load_n(&g->large.requested, __ATOMIC_RELAXED);
	size_t next = (g->large.page + pages) >> (TM_GRANULE_SHIFT - TM_PAGE_SHIFT);
	unsigned epoch8 = (unsigned)(entry >> 16) & 0xff;

	add_total(&c->totals, tier, 1, bytes, pages << TM_PAGE_SHIFT);
	if (c->scratch != NULL) {
		count(c, (uint32_t)(entry >> 24), (unsigned)(entry & 0xffff) >> 4, epoch8, bytes);
		if (c->ancient[epoch8])
			forget_age((uint8_t *)&g->large.account + 2, (uint8_t)epoch8);
	}
	return next > index && next < index + (1u << 24) ? next : index + 1;
}

/* Slots count for the session tier unless their span has another one. */
static unsigned tier_of(const struct tm_granule *g)
{
	return g->tier != 0 ? g->tier : TM_TIER_SESSION;
}

/* Walks on from the next granule. True: the end was reached. */
static bool walk(struct census *c, uint64_t steps)
{
	size_t granules = __atomic_load_n(&tm_zone.len, __ATOMIC_ACQUIRE) >> TM_GRANULE_SHIFT;

	for (; (c->granule = tm_zone_pass(c->granule, granules)) < granules && c->taken < steps;
	     c->taken++) {
		struct tm_granule *g = &tm_zone.granules[c->granule];
		uintptr_t owner = tm_granule_owner(g);

		if (owner == TM_OWNER_LARGE) {
			c->granule = count_block(c, g, c->granule, tier_of(g));
			continue;
		}
		if (owner != TM_OWNER_NONE && g->head == c->granule + 1 && g->carved != 0)
			count_span(c, g, tier_of(g));
		c->granule++;
	}
	return c->granule >= granules;
}

/* Sites with a single live size: if bytes / objects agrees, all their objects ever had it. */
static void count_sizes(const struct scratch *s)
{
	for (uint32_t i = 1; s != NULL && i <= s->sites; i++) {
		const struct tm_epoch_site *site = &s->site[i];

		if (site->size != 0 && site->bytes == site->size * site->objects)
			tm_sizes_census_site(site->size, site->objects);
	}
	tm_sizes_census_end();
}

/* --- from outside ----------------------------------------------------------------------------- */

static void read_ages(struct census *c, uint32_t epoch)
{
	for (unsigned e = 0; e < 256; e++) {
		uint32_t age = tm_ledger_age(epoch, e);

		c->ancient[e] = e != 0 && age >= AGE_LIMIT;
		c->age[e] = (uint8_t)tm_bits_min(age, TM_LEDGER_COHORTS - 1);
	}
}

static int take_scratch(struct census *c)
{
	c->scratch_bytes = tm_bits_align_up(
		sizeof(struct scratch) + c->heaps * sizeof(c->scratch->row_site[0]), TM_PAGE_BYTES);
	c->scratch = tm_mem_map(c->scratch_bytes);
	if (c->scratch == NULL)
		return -ENOMEM;
	read_ages(c, tm_ledger_header()->epoch);
	return 0;
}

int tm_census_begin(enum tm_census_kind kind)
{
	tm_census_end();
	census.heaps = tm_heap_count();
	if (kind == TM_CENSUS_SITES && take_scratch(&census) != 0)
		return -ENOMEM;
	census.kind = kind;
	census.ended = false;
	census.heap = tm_heap_first();
	census.row = 0;
	census.granule = 0;
	__builtin_memset(&census.totals, 0, sizeof(census.totals));
	tm_sizes_census_begin();
	return 0;
}

enum tm_census_kind tm_census_now(void)
{
	return census.kind;
}

bool tm_census_go_on(uint64_t steps)
{
	if (census.ended)
		return true;
	census.taken = 0;
	map_rows(&census, steps);
	census.ended = census.taken < steps && walk(&census, steps);
	if (steps != TM_CENSUS_WHOLE)
		census.longest = tm_bits_max(census.longest, census.taken);
	if (census.ended)
		count_sizes(census.scratch);
	return census.ended;
}

const struct tm_census_totals *tm_census_totals(void)
{
	return &census.totals;
}

uint32_t tm_census_sites(void)
{
	return census.scratch == NULL ? 0 : census.scratch->sites;
}

struct tm_epoch_site *tm_census_site(uint32_t index)
{
	return &census.scratch->site[index];
}

struct tm_epoch_site *tm_census_site_of(uint64_t key)
{
	uint16_t at = site_index(census.scratch, key);

	return at == 0 ? NULL : &census.scratch->site[at];
}

void tm_census_end(void)
{
	if (census.scratch != NULL)
		tm_mem_unmap_raw(census.scratch, census.scratch_bytes);
	census.scratch = NULL;
	census.kind = TM_CENSUS_NONE;
}

uint64_t tm_census_longest(void)
{
	return census.longest;
}
