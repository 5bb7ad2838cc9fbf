/* SPDX-License-Identifier: MIT */
#include "shim/ledger/callsite.h"

#include <stdatomic.h>

#include "shim/base/bits.h"
#include "shim/base/hash.h"
#include "shim/base/ledger_format.h"
#include "shim/boot.h"
#include "shim/heap/heap.h"
#include "shim/ledger/ledger.h"
#include "shim/ledger/modules.h"
#include "shim/ledger/python.h"
#include "shim/os/mem.h"
#include "shim/thread.h"
#include "shim/unwind/unwind.h"
#include "shim/unwind/unwind_cfi.h"

#define TABLE_BITS 15
#define TABLE_SLOTS (1u << TABLE_BITS)
_Static_assert(TABLE_SLOTS >= 2 * TM_LEDGER_STACKS, "probes stay short");
/* Words of a stack reserved for Python functions. */
#define PYTHON_DEPTH 24u
/* Most different stacks recorded for one key. */
#define VARIANTS_MAX 16u

/*
 * Bytes between two samples of a thread. The first samples find the different stacks of a key,
 * later ones weigh them: after a number of samples the interval doubles, and again whenever that
 * number has doubled; a sample is weighted by its interval. A compile that allocates 460 MB takes
 * 2,300 walks instead of 7,300.
 */
#define STACK_INTERVAL ((int64_t)64 << 10)
#define STACK_DOUBLES_AT 512u
#define STACK_DOUBLINGS_MAX 4u
#define DEEP_INTERVAL ((int64_t)4 << 10)

static void *_Atomic table_at; /* TABLE_SLOTS numbers, [atomic] index + 1 of a stack, by its key */
static uint32_t samples;       /* [atomic] of all threads; a lost one does no harm */
static TM_TLS int64_t sample_left;

static struct tm_ledger_stack *stack_at(uint32_t index)
{
	return tm_ledger_area(TM_LEDGER_STACKS_AT + index * sizeof(struct tm_ledger_stack),
			      sizeof(struct tm_ledger_stack));
}

static bool has_key(const struct tm_ledger_stack *s, const struct tm_row *row)
{
	return s->site == row->site && s->height == row->height;
}

static size_t slot_of(const struct tm_row *row)
{
	return tm_hash_slot((uint64_t)row->site | (uint64_t)row->height << 48, TABLE_BITS);
}

/* NULL: no memory. */
static uint32_t *get_table(void)
{
	return tm_mem_once(&table_at, TABLE_SLOTS * sizeof(uint32_t));
}

/* The first stack of the key from this hash slot on; NULL: none, and *slot is the free slot. */
static struct tm_ledger_stack *find(const uint32_t *table, const struct tm_row *row, size_t *slot)
{
	for (;; *slot = (*slot + 1) % TABLE_SLOTS) {
		uint32_t index = __atomic_load_n(&table[*slot], __ATOMIC_ACQUIRE);
		struct tm_ledger_stack *s = index == 0 ? NULL : stack_at(index - 1);

		if (index == 0 || (s != NULL && has_key(s, row)))
			return s;
	}
}

struct capture {
	struct tm_unwind_walk walk;
	uint64_t frames[TM_LEDGER_STACK_DEPTH];
	uint32_t hash;
	struct tm_unwind_room room;
};

/* The work space of the last walk, kept for the next one. */
static _Atomic(struct capture *) spare;

/*
 * Work space in mapped pages: the caller may be on a coroutine's small stack (H26). NULL: no
 * memory.
 */
static struct capture *capture(const struct tm_heap *h, struct tm_site site)
{
	struct capture *c = atomic_exchange_explicit(&spare, NULL, memory_order_acquire);
	bool in_python = tm_python_is_site(site.return_address);
	unsigned depth = in_python ? TM_LEDGER_STACK_DEPTH - PYTHON_DEPTH : TM_LEDGER_STACK_DEPTH;
	struct tm_unwind_regs regs;

	if (c == NULL)
		c = tm_mem_map(sizeof(*c));
	if (c == NULL) {
		__atomic_fetch_add(&tm_ledger_header()->stacks_lost, 1, __ATOMIC_RELAXED);
		return NULL;
	}
	uintptr_t return_address = tm_python_return_address(site.return_address);
	c->walk = (struct tm_unwind_walk){.room = &c->room,
					  .return_address = return_address,
					  .frame = site.frame,
					  .stack_top = h->stack_top,
					  .seen = tm_modules_seen};
	tm_unwind_here(&regs);
	tm_unwind_walk(&c->walk, &regs, c->frames, depth);
	if (in_python)
		c->walk.count += tm_python_frames(c->frames + c->walk.count,
						  TM_LEDGER_STACK_DEPTH - c->walk.count);
	c->hash = (uint32_t)tm_hash_bytes(c->frames, c->walk.count * sizeof(c->frames[0]));
	return c;
}

static void put_away(struct capture *c)
{
	c = atomic_exchange_explicit(&spare, c, memory_order_acq_rel);
	if (c != NULL)
		(void)tm_mem_unmap_raw(c, sizeof(*c));
}

static uint64_t *take_frames(struct tm_ledger_header *header, unsigned count, uint32_t *ret_at)
{
	uint32_t at = __atomic_load_n(&header->frames, __ATOMIC_RELAXED);

	do {
		if (count > TM_LEDGER_FRAMES - at)
			return NULL;
	} while (!__atomic_compare_exchange_n(&header->frames, &at, at + count, true,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	*ret_at = at;
	return tm_ledger_area(TM_LEDGER_FRAMES_AT + at * sizeof(uint64_t),
			      count * sizeof(uint64_t));
}

static bool take_record(struct tm_ledger_header *header, uint32_t *ret_index)
{
	uint32_t index = __atomic_load_n(&header->stacks, __ATOMIC_RELAXED);

	do {
		if (index >= TM_LEDGER_STACKS)
			return false;
	} while (!__atomic_compare_exchange_n(&header->stacks, &index, index + 1, true,
					      __ATOMIC_RELEASE, __ATOMIC_RELAXED));
	*ret_index = index;
	return true;
}

static void add(uint32_t *table, const struct tm_row *row, const struct capture *c, size_t slot,
		uint32_t weight)
{
	struct tm_ledger_header *header = tm_ledger_header();
	struct tm_ledger_stack *s = NULL;
	uint32_t at = 0, index = 0, none = 0;
	uint64_t *frames = take_frames(header, c->walk.count, &at);

	if (frames != NULL && take_record(header, &index))
		s = stack_at(index);
	if (s == NULL) {
		__atomic_fetch_add(&header->stacks_lost, 1, __ATOMIC_RELAXED);
		return;
	}
	__builtin_memcpy(frames, c->frames, c->walk.count * sizeof(uint64_t));
	s->frames_at = at;
	s->frames = (uint16_t)c->walk.count;
	s->unwinder = c->walk.by_frames                         ? TM_LEDGER_BY_FRAMES
		      : c->walk.count > 1 || !c->walk.truncated ? TM_LEDGER_BY_CFI
								: TM_LEDGER_BY_NOTHING;
	s->truncated = c->walk.truncated;
	s->epoch = header->epoch;
	s->samples = weight;
	s->hash = c->hash;
	s->thread = (uint32_t)tm_thread_id();
	struct tm_ledger_stack head = {.site = row->site, .height = row->height};
	uint64_t word;
	__builtin_memcpy(&word, &head, sizeof(word));
	__atomic_store_n((uint64_t *)(void *)s, word, __ATOMIC_RELEASE);
	while (!__atomic_compare_exchange_n(&table[slot], &none, index + 1, false, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED)) {
		none = 0;
		slot = (slot + 1) % TABLE_SLOTS;
	}
}

TM_NOINLINE void tm_callsite_new(const struct tm_heap *h, const struct tm_row *row,
				 struct tm_site site)
{
	size_t slot = slot_of(row);
	struct capture *c;
	uint32_t *table;

	if (tm_ledger_header() == NULL || (table = get_table()) == NULL ||
	    find(table, row, &slot) != NULL)
		return;
	c = capture(h, site);
	if (c == NULL)
		return;
	add(table, row, c, slot, 1);
	put_away(c);
}

/* Counts the stack in its record; a new stack gets a record. */
static void note(const struct tm_row *row, const struct capture *c, uint32_t weight)
{
	size_t slot = slot_of(row);
	uint32_t *table = get_table();
	struct tm_ledger_stack *s;

	if (table == NULL)
		return;
	for (unsigned n = 0; (s = find(table, row, &slot)) != NULL; n++) {
		if (s->hash == c->hash || n == VARIANTS_MAX) {
			__atomic_fetch_add(&s->samples, weight, __ATOMIC_RELAXED);
			return;
		}
		slot = (slot + 1) % TABLE_SLOTS;
	}
	add(table, row, c, slot, weight);
}

static TM_NOINLINE void sample_now(const struct tm_heap *h, const struct tm_row *row,
				   struct tm_site site, uint32_t weight)
{
	struct capture *c = capture(h, site);

	if (c == NULL)
		return;
	note(row, c, weight);
	put_away(c);
}

/* Weight of the next sample, relative to the first ones. */
static uint32_t next_weight(void)
{
	uint32_t n = __atomic_load_n(&samples, __ATOMIC_RELAXED);

	__atomic_store_n(&samples, n + (n != UINT32_MAX), __ATOMIC_RELAXED);
	return n < STACK_DOUBLES_AT ? 1
				    : 1u << tm_bits_min(tm_bits_log2(n / STACK_DOUBLES_AT) + 1,
							STACK_DOUBLINGS_MAX);
}

void tm_callsite_sample(const struct tm_heap *h, const struct tm_row *row, size_t bytes,
			struct tm_site site)
{
	/* for small slots this is called once per refill, so it stands for a page of slots */
	sample_left -= (int64_t)(bytes < TM_PAGE_BYTES ? TM_PAGE_BYTES : bytes);
	if (sample_left >= 0 || row->site == 0 || tm_ledger_header() == NULL)
		return;
	uint32_t weight = 1;
	sample_left = DEEP_INTERVAL;
	if (tm_root.options.ledger != TM_LEDGER_DEEP) {
		weight = next_weight();
		sample_left = STACK_INTERVAL * weight;
	}
	sample_now(h, row, site, weight);
}

void tm_callsite_fork_child(void)
{
	uint32_t *table = atomic_load_explicit(&table_at, memory_order_relaxed);

	samples = 0;
	for (uint32_t i = 0; table != NULL && i < TABLE_SLOTS; i++)
		if (table[i] != 0)
			table[i] = 0;
	tm_python_fork_child();
	tm_modules_fork_child();
}
