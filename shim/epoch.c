/* SPDX-License-Identifier: MIT */
#include "shim/epoch.h"

#include "shim/base/bits.h"
#include "shim/base/hash.h"
#include "shim/epoch_records.h"
#include "shim/heap/account.h"
#include "shim/heap/arena.h"
#include "shim/heap/heap.h"
#include "shim/heap/span.h"
#include "shim/heap/tier.h"
#include "shim/heap/zone.h"
#include "shim/ledger.h"
#include "shim/modules.h"
#include "shim/os/clock.h"
#include "shim/os/mem.h"
#include "shim/sizes.h"

#define OLD_WINDOWS 8u
/* From this age on, in windows, an object's birth is no longer told apart. */
#define AGE_LIMIT 200u
#define SITES_BITS 14
#define SITES_MAX ((1u << SITES_BITS) - 1)
#define HASH_BITS (SITES_BITS + 1)
#define SCAN_SHARE 100u

/* Memory of one count; given back at its end. */
struct scratch {
	struct tm_epoch_site site[SITES_MAX + 1];
	uint16_t by_key[1u << HASH_BITS]; /* index + 1 */
	uint32_t sites;
	uint16_t row_site[][TM_LEDGER_ROWS]; /* by heap and row */
};

struct census {
	struct tm_epoch_totals *totals;
	struct scratch *scratch; /* NULL: totals alone */
	uint32_t heaps;
	uint32_t epoch;
	uint8_t age[256]; /* of an entry's epoch, in windows, at most COHORTS - 1 */
	uint8_t ancient[256];
};

/* --- marks ------------------------------------------------------------------------------------ */

static uint64_t marks[TM_EPOCH_MARKS];          /* [atomic] */
static uint64_t marks_at_begin[TM_EPOCH_MARKS]; /* of the ledger */
static uint64_t marks_at_window[TM_EPOCH_MARKS];

void tm_epoch_mark(enum tm_epoch_mark mark)
{
	__atomic_fetch_add(&marks[mark], 1, __ATOMIC_RELAXED);
}

uint64_t tm_epoch_marked(enum tm_epoch_mark mark)
{
	return __atomic_load_n(&marks[mark], __ATOMIC_RELAXED) - marks_at_begin[mark];
}

/* Since the last window's end. */
static uint32_t marked_in_window(enum tm_epoch_mark mark)
{
	uint64_t now = __atomic_load_n(&marks[mark], __ATOMIC_RELAXED);
	uint64_t count = now - marks_at_window[mark];

	marks_at_window[mark] = now;
	return (uint32_t)tm_bits_min(count, UINT32_MAX);
}

static void begin_marks(void)
{
	for (unsigned i = 0; i < TM_EPOCH_MARKS; i++)
		marks_at_begin[i] = marks_at_window[i] =
			__atomic_load_n(&marks[i], __ATOMIC_RELAXED);
}

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

static void map_rows(struct tm_heap *h, void *arg)
{
	struct census *c = arg;
	uint32_t rows = __atomic_load_n(&h->rows, __ATOMIC_ACQUIRE);

	for (uint32_t n = 0; n < rows; n++) {
		const struct tm_row *row = tm_account_row((uintptr_t)h, n << 4);
		uint64_t objects = __atomic_load_n(&row->objects, __ATOMIC_RELAXED);

		c->totals->births += objects;
		if (c->scratch == NULL || h->index >= c->heaps)
			continue;
		uint16_t at =
			site_index(c->scratch, (uint64_t)row->site | (uint64_t)row->height << 48);
		c->scratch->row_site[h->index][n] = at;
		c->scratch->site[at].objects += objects;
		c->scratch->site[at].bytes += __atomic_load_n(&row->bytes, __ATOMIC_RELAXED);
	}
}

/* --- the walk --------------------------------------------------------------------------------- */

/* Whoever reuses the slot meanwhile has written another number. */
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
	s->old += age >= OLD_WINDOWS;
	s->cohort[age]++;
}

static void add_total(struct tm_epoch_totals *t, unsigned tier, uint64_t objects, uint64_t bytes,
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

/* Its owner may release the span meanwhile: what it was is read once and checked (see core.c). */
static void count_span(struct census *c, const struct tm_granule *head, unsigned tier)
{
	uint8_t *side = __atomic_load_n(&head->side, __ATOMIC_ACQUIRE);
	uint8_t klass = __atomic_load_n(&head->klass, __ATOMIC_ACQUIRE);
	uint16_t carved = __atomic_load_n(&head->carved, __ATOMIC_ACQUIRE);
	uintptr_t owner = tm_granule_owner(head) & ~TM_OWNER_BITS;
	const struct tm_class_shape *shape = &tm_class_shape[klass < TM_LISTS ? klass : 0];
	bool small = klass < TM_SMALL_CLASSES;
	uint64_t objects = 0, bytes = 0, slots = 0;

	if (klass >= TM_LISTS || side == NULL || owner == 0 || carved > shape->slots ||
	    side != __atomic_load_n(&head->side, __ATOMIC_RELAXED) ||
	    klass != __atomic_load_n(&head->klass, __ATOMIC_RELAXED))
		return;
	uint32_t heap = ((const struct tm_heap *)owner)->index;
	for (uint32_t i = (uint32_t)(shape->slots - carved); i < shape->slots; i++) {
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
	add_total(c->totals, tier, objects, bytes, slots);
}

/* The granule where the next thing can begin. */
static size_t count_block(struct census *c, struct tm_granule *g, size_t index, unsigned tier)
{
	uint64_t pages = __atomic_load_n(&g->large.pages, __ATOMIC_RELAXED);
	uint64_t entry = __atomic_load_n(&g->large.account, __ATOMIC_RELAXED);
	uint64_t bytes = __atomic_load_n(&g->large.requested, __ATOMIC_RELAXED);
	size_t next = (g->large.page + pages) >> (TM_GRANULE_SHIFT - TM_PAGE_SHIFT);
	unsigned epoch8 = (unsigned)(entry >> 16) & 0xff;

	add_total(c->totals, tier, 1, bytes, pages << TM_PAGE_SHIFT);
	if (c->scratch != NULL) {
		count(c, (uint32_t)(entry >> 24), (unsigned)(entry & 0xffff) >> 4, epoch8, bytes);
		if (c->ancient[epoch8])
			forget_age((uint8_t *)&g->large.account + 2, (uint8_t)epoch8);
	}
	return next > index && next < index + (1u << 24) ? next : index + 1;
}

/* Slots are the session tier's unless their span says otherwise. */
static unsigned tier_of(const struct tm_granule *g)
{
	return g->tier != 0 ? g->tier : TM_TIER_SESSION;
}

static void walk(struct census *c)
{
	size_t granules = tm_zone.len >> TM_GRANULE_SHIFT;

	tm_heap_each(map_rows, c);
	tm_sizes_census_begin();
	for (size_t i = 0; i < granules;) {
		struct tm_granule *g = &tm_zone.granules[i];
		uintptr_t owner = tm_granule_owner(g);

		if (owner == TM_OWNER_LARGE) {
			i = count_block(c, g, i, tier_of(g));
			continue;
		}
		if (owner != TM_OWNER_NONE && g->head == i + 1 && g->carved != 0)
			count_span(c, g, tier_of(g));
		i++;
	}
	/* Sites that ask for one size: all they ever had are of it, if their bytes say so too. */
	for (uint32_t i = 1; c->scratch != NULL && i <= c->scratch->sites; i++) {
		const struct tm_epoch_site *site = &c->scratch->site[i];

		if (site->size != 0 && site->bytes == site->size * site->objects)
			tm_sizes_census_site(site->size, site->objects);
	}
	tm_sizes_census_end();
}

void tm_epoch_totals(struct tm_epoch_totals *ret)
{
	struct census c = {.totals = ret};

	__builtin_memset(ret, 0, sizeof(*ret));
	walk(&c);
}

/* --- the ledger's cohorts --------------------------------------------------------------------- */

static uint32_t update_records(struct scratch *s, uint32_t epoch, uint32_t *ret_weakest)
{
	struct tm_ledger_header *header = tm_ledger_header();
	uint64_t least = UINT64_MAX;
	uint32_t n;

	for (n = 0; n < header->cohort_sites; n++) {
		struct tm_ledger_cohorts *r = tm_epoch_record(n);
		uint64_t key = r == NULL || r->gpu_row != 0
				       ? 0
				       : (uint64_t)r->site | (uint64_t)r->height << 48;
		uint16_t at = key == 0 ? 0 : site_index(s, key);

		if (at == 0)
			continue;
		tm_epoch_record_write(r, &s->site[at], epoch);
		if (r->live_bytes < least) {
			least = r->live_bytes;
			*ret_weakest = n;
		}
		s->site[at].key = 0; /* done */
	}
	return n;
}

static void add_records(struct scratch *s, uint32_t epoch)
{
	struct tm_ledger_header *header = tm_ledger_header();
	uint32_t weakest = 0;

	update_records(s, epoch, &weakest);
	for (uint32_t i = 1; i <= s->sites; i++) {
		const struct tm_epoch_site *site = &s->site[i];
		struct tm_ledger_cohorts *r;

		if (site->key == 0 || site->live < TM_EPOCH_LIVE_MIN || site->cohort[0] == 0)
			continue;
		if (header->cohort_sites == TM_LEDGER_COHORT_SITES) {
			r = tm_epoch_record(weakest);
			if (r == NULL || r->live_bytes >= site->live_bytes / 2)
				continue;
			tm_epoch_record_begin(r, site, epoch);
			continue;
		}
		r = tm_epoch_record(header->cohort_sites);
		if (r == NULL)
			return;
		tm_epoch_record_begin(r, site, epoch);
		__atomic_store_n(&header->cohort_sites, header->cohort_sites + 1, __ATOMIC_RELEASE);
	}
}

static void write_window(const struct tm_epoch_totals *t, uint64_t now_ms, uint64_t rss_bytes,
			 uint32_t sites)
{
	static uint64_t births_before; /* of the ledger's process: starts anew with it */
	struct tm_ledger_header *header = tm_ledger_header();
	uint32_t index = header->windows % TM_LEDGER_WINDOWS;
	struct tm_ledger_window *w =
		tm_ledger_area(TM_LEDGER_WINDOWS_AT + index * sizeof(*w), sizeof(*w));

	if (w == NULL)
		return;
	if (header->windows == 0)
		births_before = 0;
	__atomic_store_n(&w->seq, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	w->sites = sites;
	w->begun_ms = header->epoch_begun_ms;
	w->ended_ms = now_ms;
	w->live_objects = t->objects[0];
	w->live_bytes = t->live_bytes[0];
	w->births = t->births - births_before;
	w->rss_bytes = rss_bytes;
	w->sessions = marked_in_window(TM_EPOCH_SESSION);
	w->tokens = marked_in_window(TM_EPOCH_TOKEN);
	births_before = t->births;
	__atomic_store_n(&w->seq, header->epoch, __ATOMIC_RELEASE);
	__atomic_store_n(&header->windows, header->windows + 1, __ATOMIC_RELEASE);
}

/* --- windows ---------------------------------------------------------------------------------- */

static void set_epoch(struct tm_heap *h, void *arg)
{
	(void)arg;
	__atomic_store_n(&h->birth, tm_account_birth, __ATOMIC_RELAXED);
}

static void begin_epoch(uint32_t epoch)
{
	tm_account_birth = (uint64_t)tm_ledger_epoch8(epoch) << TM_BIRTH_SHIFT;
	tm_heap_each(set_epoch, NULL);
}

static void read_ages(struct census *c)
{
	for (unsigned e = 0; e < 256; e++) {
		uint32_t age = tm_ledger_age(c->epoch, e);

		c->ancient[e] = e != 0 && age >= AGE_LIMIT;
		c->age[e] = (uint8_t)tm_bits_min(age, TM_LEDGER_COHORTS - 1);
	}
}

void tm_epoch_begin(uint32_t window_ms)
{
	struct tm_ledger_header *header = tm_ledger_header();

	header->epoch = 1;
	header->window_ms = window_ms;
	header->epoch_begun_ms = tm_clock_ms();
	header->old_windows = OLD_WINDOWS;
	header->features |= TM_LEDGER_HAS_EPOCHS;
	begin_marks();
	begin_epoch(1);
}

/* With scratch, which the caller gives back. Its bytes; 0: no memory. */
static size_t walk_sites(struct census *c)
{
	size_t bytes = (sizeof(struct scratch) + c->heaps * sizeof(c->scratch->row_site[0]) +
			TM_PAGE_BYTES - 1) &
		       ~(TM_PAGE_BYTES - 1);

	c->scratch = tm_mem_map(bytes);
	if (c->scratch == NULL)
		return 0;
	read_ages(c);
	walk(c);
	return bytes;
}

void tm_epoch_sizes(void)
{
	struct tm_epoch_totals totals = {{0}, {0}, {0}, 0};
	struct census c = {
		.totals = &totals, .epoch = tm_ledger_header()->epoch, .heaps = tm_heap_count()};
	size_t bytes = walk_sites(&c);

	if (bytes != 0)
		tm_mem_unmap_raw(c.scratch, bytes);
}

void tm_epoch_tick(uint64_t now_ms, uint64_t rss_bytes)
{
	struct tm_ledger_header *header = tm_ledger_header();
	uint64_t scan_ms = header->scan_ns / 1000000;
	uint64_t wanted = header->window_ms;
	struct tm_epoch_totals totals = {{0}, {0}, {0}, 0};
	struct census c = {.totals = &totals, .epoch = header->epoch, .heaps = tm_heap_count()};

	if (scan_ms * SCAN_SHARE > wanted)
		wanted = scan_ms * SCAN_SHARE;
	if (now_ms - header->epoch_begun_ms < wanted)
		return;
	uint64_t before = tm_clock_ns();
	size_t bytes = walk_sites(&c);
	if (bytes == 0)
		return;
	add_records(c.scratch, header->epoch);
	tm_epoch_record_devices(now_ms);
	tm_modules_sweep();
	write_window(&totals, now_ms, rss_bytes, c.scratch->sites);
	tm_mem_unmap_raw(c.scratch, bytes);
	header->scan_ns = tm_clock_ns() - before;
	header->epoch_begun_ms = now_ms;
	__atomic_store_n(&header->epoch, header->epoch + 1, __ATOMIC_RELEASE);
	begin_epoch(header->epoch);
}
