/* SPDX-License-Identifier: MIT */
#include "shim/ledger/deep.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "shim/base/bits.h"
#include "shim/base/hash.h"
#include "shim/base/ledger_format.h"
#include "shim/boot.h"
#include "shim/heap/account.h"
#include "shim/heap/heap.h"
#include "shim/heap/large.h"
#include "shim/heap/span.h"
#include "shim/heap/tcache_inline.h"
#include "shim/heap/zone.h"
#include "shim/ledger/ledger.h"
#include "shim/ledger/ledger_areas.h"
#include "shim/ledger/sizes.h"
#include "shim/os/clock.h"
#include "shim/os/lock.h"
#include "shim/os/mem.h"
#include "shim/os/proc.h"
#include "shim/os/sys.h"

#define BLOCK_WINDOW_BYTES ((size_t)64 << 10)
#define BLOCKS_PER_WINDOW (BLOCK_WINDOW_BYTES / sizeof(uint64_t))
#define BLOCK_WINDOWS (TM_LEDGER_GRANULES / BLOCKS_PER_WINDOW)
#define SLOT_BITS 14
#define SLOTS (1u << SLOT_BITS)
_Static_assert(SLOTS >= 2 * TM_LEDGER_LIVES, "probes stay short");

static struct tm_lock lock = TM_LOCK_INIT(TM_RANK_SITES);

/* [atomic] address of each mapped window of births; 1: it can't be mapped */
static uint64_t *slot_window[TM_LEDGER_BIRTHS_STRIDES];
static uint64_t *block_window[BLOCK_WINDOWS];
#define NO_WINDOW ((uint64_t *)1)

static uint32_t generation;        /* of the process image that has this ledger */
static uint16_t lives_slot[SLOTS]; /* [atomic] number + 1 of a site's record, by its hash */

/*
 * A signal handler that interrupted an allocation, or one of these functions, must take no lock:
 * whatever would need one is dropped and counted. Its own allocations come from emergency memory,
 * because these functions set the heap's busy bit too: like the slow paths they may grow the
 * ledger.
 */
static bool may_lock(void)
{
	return (tm_heap_word & TM_HEAP_BUSY_BIT) == 0;
}

static uintptr_t enter(void)
{
	uintptr_t word = tm_heap_word;

	(void)tm_tcache_enter(word);
	return word;
}

static uintptr_t enter_locked(void)
{
	uintptr_t word = enter();

	tm_lock_acquire(&lock);
	return word;
}

static void leave_locked(uintptr_t word)
{
	tm_lock_release(&lock);
	tm_tcache_leave(word);
}

TM_AT_START_CODE bool tm_deep_is_wanted(void)
{
	return tm_root.options.ledger == TM_LEDGER_DEEP;
}

/* --- births ----------------------------------------------------------------------------------- */

/* [lock] */
static uint64_t *map_window(uint64_t offset, size_t bytes)
{
	const char *path = tm_ledger_path();
	int fd =
		path != NULL && tm_proc_may_open() ? tm_sys_open(path, O_RDWR | O_NOFOLLOW, 0) : -1;
	struct stat st;
	long p = -1;

	if (fd < 0)
		return NO_WINDOW;
	if (tm_sys_fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    (uint64_t)st.st_size == TM_LEDGER_BYTES)
		p = tm_sys_mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd,
				(long)offset);
	tm_sys_close(fd);
	if (tm_sys_is_error(p))
		return NO_WINDOW;
	tm_ledger_advise((void *)p, bytes);
	if (tm_ledger_populate((void *)p, bytes))
		return (uint64_t *)p;
	(void)tm_mem_unmap_raw((void *)p, bytes);
	return NO_WINDOW;
}

static uint64_t *window_of(uint64_t **table, size_t index, uint64_t area, size_t stride)
{
	uint64_t *w = __atomic_load_n(&table[index], __ATOMIC_ACQUIRE);

	if (TM_UNLIKELY(w == NULL)) {
		if (!may_lock())
			return NULL;
		uintptr_t word = enter_locked();
		w = table[index];
		if (w == NULL) {
			w = map_window(area + index * stride, stride);
			__atomic_store_n(&table[index], w, __ATOMIC_RELEASE);
		}
		leave_locked(word);
	}
	return w == NO_WINDOW ? NULL : w;
}

static uint64_t *slot_birth(const void *entry)
{
	uint64_t offset;

	if (!tm_ledger_side_offset(entry, &offset) ||
	    offset / TM_LEDGER_BIRTHS_SIDES >= TM_LEDGER_BIRTHS_STRIDES)
		return NULL;
	uint64_t *w = window_of(slot_window, offset / TM_LEDGER_BIRTHS_SIDES, TM_LEDGER_BIRTHS_AT,
				TM_LEDGER_BIRTHS_STRIDE);
	return w == NULL ? NULL : &w[offset % TM_LEDGER_BIRTHS_SIDES / 3];
}

static uint64_t *block_birth(size_t granule)
{
	uint64_t *w;

	if (granule >= TM_LEDGER_GRANULES)
		return NULL;
	w = window_of(block_window, granule / BLOCKS_PER_WINDOW, TM_LEDGER_BLOCK_BIRTHS_AT,
		      BLOCK_WINDOW_BYTES);
	return w == NULL ? NULL : &w[granule % BLOCKS_PER_WINDOW];
}

/* --- objects ---------------------------------------------------------------------------------- */

static uint64_t key_of(uintptr_t heap, unsigned id)
{
	const struct tm_row *row = tm_account_row(heap, id & 0xfff0);

	return (uint64_t)row->site | (uint64_t)row->height << 48;
}

static struct tm_deep_life look_at_block(const void *p, struct tm_granule *g)
{
	uint64_t account = g->large.account;
	uintptr_t heap = tm_heap_base() + (account >> 24) * TM_HEAP_STRIDE;

	if (!tm_large_starts_at(p, g))
		return (struct tm_deep_life){.birth = NULL};
	return (struct tm_deep_life){.birth = block_birth((size_t)(g - tm_zone.granules)),
				     .key = key_of(heap, (unsigned)account)};
}

static struct tm_deep_life look_at_slot(const void *p, struct tm_granule *g)
{
	struct tm_granule *head = tm_span_head(g);
	int32_t index = tm_span_index(head, p);
	struct tm_deep_life life = {.birth = NULL};

	if (index < 0 || head->side == NULL || tm_span_entry_is_free(head, (uint32_t)index))
		return life;
	const void *entry = tm_span_entry(head, (uint32_t)index);
	life.birth = slot_birth(entry);
	life.key = key_of(tm_granule_owner(head) & ~TM_OWNER_BITS,
			  ((const struct tm_entry3 *)entry)->id);
	if (head->kind != TM_SPAN_SMALL)
		life.size = *(const tm_entry8 *)entry >> 24;
	if (life.size < TM_SIZES_FROM)
		life.size = 0;
	return life;
}

struct tm_deep_life tm_deep_look(const void *p)
{
	struct tm_deep_life life = {.birth = NULL};

	if (!tm_ledger_is_on() || tm_fork_generation() != generation || !tm_zone_contains(p))
		return life;
	struct tm_granule *g = tm_zone_granule(p);
	uintptr_t owner = tm_granule_owner(g);
	if (owner == TM_OWNER_LARGE)
		life = look_at_block(p, g);
	else if (owner != TM_OWNER_NONE)
		life = look_at_slot(p, g);
	if (life.birth != NULL)
		life.born_ns = __atomic_load_n(life.birth, __ATOMIC_RELAXED);
	return life;
}

static unsigned tier_of(const struct tm_granule *head)
{
	return head->tier != 0 ? head->tier : TM_TIER_SESSION;
}

/* tm_sizes_add, which takes a lock for a new size. */
static void add_size(size_t size, const void *p)
{
	if (!may_lock()) {
		__atomic_fetch_add(&tm_ledger_header()->sizes_lost, 1, __ATOMIC_RELAXED);
		return;
	}
	uintptr_t word = enter();
	tm_sizes_add(size, tier_of(tm_span_head(tm_zone_granule(p))));
	tm_tcache_leave(word);
}

void tm_deep_born(const void *p)
{
	struct tm_deep_life life = tm_deep_look(p);

	if (life.size != 0)
		add_size(life.size, p);
	if (life.birth != NULL)
		__atomic_store_n(life.birth, tm_clock_ns(), __ATOMIC_RELAXED);
	else if (tm_ledger_is_on())
		__atomic_fetch_add(&tm_ledger_header()->births_lost, 1, __ATOMIC_RELAXED);
}

/* --- lives ------------------------------------------------------------------------------------ */

static struct tm_ledger_lives *record_at(uint32_t n)
{
	return tm_ledger_area(TM_LEDGER_LIVES_AT + n * sizeof(struct tm_ledger_lives),
			      sizeof(struct tm_ledger_lives));
}

/* The first word of a record of lives, written last. */
static uint64_t *key_word(struct tm_ledger_lives *l)
{
	return (uint64_t *)(void *)l;
}

static struct tm_ledger_lives *find(uint64_t key, size_t *ret_at)
{
	for (size_t at = tm_hash_slot(key, SLOT_BITS);; at = (at + 1) % SLOTS) {
		uint16_t n = __atomic_load_n(&lives_slot[at], __ATOMIC_ACQUIRE);
		struct tm_ledger_lives *l = n == 0 ? NULL : record_at(n - 1u);

		*ret_at = at;
		if (n == 0 || (l != NULL && *key_word(l) == key))
			return l;
	}
}

static struct tm_ledger_lives *make(uint64_t key)
{
	struct tm_ledger_header *header = tm_ledger_header();
	struct tm_ledger_lives *l;
	size_t at;

	if (!may_lock())
		return NULL;
	uintptr_t word = enter_locked();
	l = find(key, &at);
	if (l == NULL && header->lives < TM_LEDGER_LIVES &&
	    (l = record_at(header->lives)) != NULL) {
		l->least_ns = UINT64_MAX;
		__atomic_store_n(key_word(l), key, __ATOMIC_RELEASE);
		__atomic_store_n(&header->lives, header->lives + 1, __ATOMIC_RELEASE);
		__atomic_store_n(&lives_slot[at], (uint16_t)header->lives, __ATOMIC_RELEASE);
	}
	leave_locked(word);
	return l;
}

static void keep_extremes(struct tm_ledger_lives *l, uint64_t ns)
{
	uint64_t seen = __atomic_load_n(&l->least_ns, __ATOMIC_RELAXED);

	while (ns < seen && !__atomic_compare_exchange_n(&l->least_ns, &seen, ns, true,
							 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	seen = __atomic_load_n(&l->most_ns, __ATOMIC_RELAXED);
	while (ns > seen && !__atomic_compare_exchange_n(&l->most_ns, &seen, ns, true,
							 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static void count(uint32_t *histogram, unsigned buckets, uint64_t value)
{
	unsigned bucket = tm_bits_log2(value + 1);

	__atomic_fetch_add(&histogram[bucket < buckets ? bucket : buckets - 1], 1,
			   __ATOMIC_RELAXED);
}

void tm_deep_forget(const struct tm_deep_life *life)
{
	if (life->birth != NULL)
		__atomic_store_n(life->birth, 0, __ATOMIC_RELAXED);
}

void tm_deep_died(const struct tm_deep_life *life)
{
	struct tm_ledger_lives *l;
	size_t at;

	if (life->size != 0)
		tm_sizes_remove(life->size);
	if (life->birth == NULL || life->born_ns == 0)
		return;
	uint64_t ns = tm_clock_ns() - life->born_ns;
	l = life->key == 0 ? NULL : find(life->key, &at);
	if (l == NULL && life->key != 0)
		l = make(life->key);
	if (l == NULL) {
		__atomic_fetch_add(&tm_ledger_header()->lives_lost, 1, __ATOMIC_RELAXED);
		return;
	}
	__atomic_fetch_add(&l->objects, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&l->sum_ns, ns, __ATOMIC_RELAXED);
	keep_extremes(l, ns);
	count(l->by_us, TM_ARRAY_LEN(l->by_us), ns / 1000);
	count(l->by_s, TM_ARRAY_LEN(l->by_s), ns / 1000000000);
}

/* --- begin and end ---------------------------------------------------------------------------- */

TM_AT_START_CODE void tm_deep_init(void)
{
	tm_lock_register(&lock);
}

void tm_deep_begin(void)
{
	generation = tm_fork_generation();
	if (tm_deep_is_wanted())
		tm_ledger_header()->features |= TM_LEDGER_HAS_BIRTHS;
}

void tm_deep_fork_child(void)
{
	if (!tm_deep_is_wanted())
		return;
	for (size_t i = 0; i < TM_LEDGER_BIRTHS_STRIDES; i++) {
		if (slot_window[i] > NO_WINDOW)
			(void)tm_mem_unmap_raw(slot_window[i], TM_LEDGER_BIRTHS_STRIDE);
		if (slot_window[i] != NULL)
			slot_window[i] = NULL;
	}
	for (size_t i = 0; i < BLOCK_WINDOWS; i++) {
		if (block_window[i] > NO_WINDOW)
			(void)tm_mem_unmap_raw(block_window[i], BLOCK_WINDOW_BYTES);
		if (block_window[i] != NULL)
			block_window[i] = NULL;
	}
	__builtin_memset(lives_slot, 0, sizeof(lives_slot));
}
