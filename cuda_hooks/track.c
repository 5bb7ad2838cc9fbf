/* SPDX-License-Identifier: MIT */
#include "cuda_hooks/track.h"

#include "cuda_hooks/memory.h"
#include "shim/base/hash.h"

#define SPACE_SHIFT 60u
#define FIRST_BITS 8u
#define ROW_BITS 11u

_Static_assert((1u << ROW_BITS) >= 2 * TM_LEDGER_GPU_ROWS, "probes stay short");

static struct tm_track_block *table; /* [lock] open addressing, linear probes, no tombstones */
static unsigned bits;                /* [lock] log2 of its length */
static size_t used;                  /* [lock] */
static size_t limit;                 /* [lock] records that fit: half; 0: no table or rows yet */
static uint64_t lost;                /* [lock] */

static struct tm_ledger_gpu *rows; /* [lock] */
static uint32_t row_count;         /* [lock] */
static bool rows_are_lent;         /* [lock] the rows live in the ledger */
static uint32_t own_count;
static uint64_t own_lost;
static uint32_t *count_of_rows = &own_count; /* [lock] points into the ledger once there is one */
static uint64_t *lost_rows = &own_lost;      /* [lock] */
static uint16_t row_index[1u << ROW_BITS];   /* [lock] hash table of row numbers + 1; 0: free */
static struct tm_track_total totals[TM_TRACK_DEVICES];
static unsigned devices;

static uint64_t key_of(enum tm_track_space space, uint64_t value)
{
	return value ^ (uint64_t)space << SPACE_SHIFT;
}

/* --- counters ------------------------------------------------------------------------------------- */

static bool rows_ready(void)
{
	if (rows == NULL)
		rows = tm_cuda_memory_take(TM_LEDGER_GPU_ROWS * sizeof(*rows));
	return rows != NULL;
}

void tm_track_move_rows(struct tm_ledger_gpu *area, uint32_t *count, uint64_t *lost_count)
{
	if (area == rows)
		return;
	if (rows != NULL)
		__builtin_memcpy(area, rows, row_count * sizeof(*rows));
	if (!rows_are_lent)
		tm_cuda_memory_give(rows, TM_LEDGER_GPU_ROWS * sizeof(*rows));
	rows = area;
	rows_are_lent = true;
	count_of_rows = count;
	lost_rows = lost_count;
	*count = row_count;
}

static bool is_row(const struct tm_ledger_gpu *row, const struct tm_track_where *where)
{
	return row->site == (where->site & ((UINT64_C(1) << 48) - 1)) &&
	       row->context == where->context && row->device == where->device &&
	       row->kind == where->kind && row->tier == where->tier;
}

uint32_t tm_track_row_of(const struct tm_track_where *where)
{
	uint64_t hash = tm_hash_add(tm_hash_add(where->site, where->context),
				    (uint64_t)where->device << 40 | (uint64_t)where->kind << 32 |
					    where->tier);
	size_t slot = tm_hash_slot(hash, ROW_BITS);
	uint32_t n;
	if (!rows_ready())
		return 0;
	for (; row_index[slot] != 0; slot = (slot + 1) % TM_ARRAY_LEN(row_index))
		if (is_row(&rows[row_index[slot] - 1], where))
			return row_index[slot] - 1u;
	if (row_count == 0)
		rows[row_count++].site = 1; /* "others": no code is at address 1 */
	if (row_count == TM_LEDGER_GPU_ROWS) {
		++*lost_rows;
		return 0;
	}
	n = row_count++;
	rows[n].context = where->context;
	rows[n].device = where->device;
	rows[n].kind = where->kind;
	rows[n].tier = where->tier;
	__atomic_thread_fence(__ATOMIC_RELEASE);
	rows[n].site = where->site & ((UINT64_C(1) << 48) - 1);
	row_index[slot] = (uint16_t)(n + 1);
	__atomic_store_n(count_of_rows, row_count, __ATOMIC_RELEASE);
	return n;
}

TM_INLINE struct tm_track_total *total_of(unsigned device)
{
	if (device >= TM_TRACK_DEVICES)
		device = TM_TRACK_DEVICES - 1;
	if (device >= devices)
		devices = device + 1;
	return &totals[device];
}

/* A mapping has no memory of its own. */
static bool counts(const struct tm_track_block *block)
{
	return block->key >> SPACE_SHIFT != TM_TRACK_MAPPING;
}

TM_INLINE void count_in(uint32_t row, const struct tm_track_block *block, unsigned device)
{
	struct tm_track_total *total = total_of(device);
	struct tm_ledger_gpu *r = &rows[row];
	r->objects++;
	r->bytes += block->bytes;
	r->live_objects++;
	r->live_bytes += block->bytes;
	if (r->live_bytes > r->peak_bytes)
		r->peak_bytes = r->live_bytes;
	total->objects[block->kind]++;
	total->live_bytes[block->kind] += block->bytes;
	if (total->live_bytes[block->kind] > total->peak_bytes[block->kind])
		total->peak_bytes[block->kind] = total->live_bytes[block->kind];
}

static void count_out(const struct tm_track_block *block)
{
	struct tm_ledger_gpu *r;
	struct tm_track_total *total;
	if (!counts(block) || !rows_ready())
		return;
	r = &rows[block->row];
	/* Row 0 may hold blocks of several devices; it counts for the first one. */
	total = total_of(r->device);
	r->live_objects--;
	r->live_bytes -= block->bytes;
	total->objects[block->kind]--;
	total->live_bytes[block->kind] -= block->bytes;
}

/* --- records -------------------------------------------------------------------------------------- */

/* Multiplicative hash: it spreads evenly spaced addresses best. */
TM_INLINE size_t home_of(uint64_t key, unsigned b)
{
	return (size_t)(key * TM_HASH_GOLDEN >> (64 - b));
}

TM_INLINE size_t slot_for(const struct tm_track_block *t, unsigned b, uint64_t key)
{
	size_t mask = ((size_t)1 << b) - 1, slot = home_of(key, b);
	while (t[slot].key != 0 && t[slot].key != key)
		slot = (slot + 1) & mask;
	return slot;
}

static bool grow(void)
{
	unsigned new_bits = table == NULL ? FIRST_BITS : bits + 1;
	struct tm_track_block *bigger = tm_cuda_memory_take(sizeof(*bigger) << new_bits), *old;
	size_t i;
	if (bigger == NULL)
		return false;
	for (i = 0; table != NULL && i >> bits == 0; i++)
		if (table[i].key != 0)
			bigger[slot_for(bigger, new_bits, table[i].key)] = table[i];
	/* Publish the table before its size, for tm_track_each_visible, which takes no lock. */
	old = table;
	table = bigger;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	bits = new_bits;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	tm_cuda_memory_give(old, old == NULL ? 0 : sizeof(*table) << (new_bits - 1));
	return true;
}

/* Makes room for one more record. False: no memory. */
static TM_COLD bool make_room(void)
{
	if (!rows_ready() || ((table == NULL || used >= (size_t)1 << (bits - 1)) && !grow())) {
		lost++;
		return false;
	}
	limit = (size_t)1 << (bits - 1);
	return true;
}

static void drop(size_t hole)
{
	size_t mask = ((size_t)1 << bits) - 1, at = hole;
	count_out(&table[hole]);
	used--;
	/* Move later records of the chain up, as far as their home slots allow. */
	for (;;) {
		size_t home;
		at = (at + 1) & mask;
		if (table[at].key == 0)
			break;
		home = home_of(table[at].key, bits);
		if (((at - home) & mask) >= ((at - hole) & mask)) {
			table[hole] = table[at];
			hole = at;
		}
	}
	table[hole].key = 0;
}

struct tm_track_block *tm_track_place(enum tm_track_space space, uint64_t value)
{
	uint64_t key = key_of(space, value);
	size_t slot;
	if (TM_UNLIKELY(used >= limit) && !make_room())
		return NULL;
	slot = slot_for(table, bits, key);
	if (TM_UNLIKELY(table[slot].key != 0)) {
		drop(slot);
		slot = slot_for(table, bits, key);
	}
	table[slot].key = key;
	used++;
	return &table[slot];
}

void tm_track_count(const struct tm_track_block *block)
{
	if (counts(block))
		count_in(block->row, block, rows[block->row].device);
}

bool tm_track_add(enum tm_track_space space, uint64_t value, struct tm_track_block *block)
{
	struct tm_track_block *place = tm_track_place(space, value);
	if (place == NULL)
		return false;
	block->key = place->key;
	*place = *block;
	tm_track_count(place);
	return true;
}

void tm_track_drop(struct tm_track_block *block)
{
	drop((size_t)(block - table));
}

void tm_track_restore(const struct tm_track_block *block)
{
	struct tm_ledger_gpu *r;
	size_t slot;
	if (TM_UNLIKELY(used >= limit) && !make_room())
		return;
	slot = slot_for(table, bits, block->key);
	/* The name is in use again: the driver gave a wrong answer, or the program frees twice. */
	if (table[slot].key != 0)
		return;
	table[slot] = *block;
	used++;
	if (!counts(block))
		return;
	r = &rows[block->row];
	count_in(block->row, block, r->device);
	r->objects--;
	r->bytes -= block->bytes;
}

struct tm_track_block *tm_track_find(enum tm_track_space space, uint64_t value)
{
	size_t slot;
	if (table == NULL)
		return NULL;
	slot = slot_for(table, bits, key_of(space, value));
	return table[slot].key == 0 ? NULL : &table[slot];
}

struct tm_track_block *tm_track_around(uint64_t address, uint64_t *ret_start)
{
	size_t i;
	for (i = 0; table != NULL && i >> bits == 0; i++) {
		uint64_t start = table[i].key ^ (uint64_t)TM_TRACK_ADDRESS << SPACE_SHIFT;
		if (table[i].key != 0 && start >> SPACE_SHIFT == 0 &&
		    address - start < table[i].bytes) {
			*ret_start = start;
			return &table[i];
		}
	}
	return NULL;
}

bool tm_track_remove(enum tm_track_space space, uint64_t value, struct tm_track_block *ret_block)
{
	size_t slot;
	if (table == NULL)
		return false;
	slot = slot_for(table, bits, key_of(space, value));
	if (table[slot].key == 0)
		return false;
	if (ret_block != NULL)
		*ret_block = table[slot];
	drop(slot);
	return true;
}

void tm_track_forget_context(uint16_t context, void (*each)(struct tm_track_block *block))
{
	size_t i = 0;
	/*
	 * A drop moves another record into the hole, so check that slot again. A record that wraps
	 * around is met twice.
	 */
	while (table != NULL && i >> bits == 0) {
		if (table[i].key == 0 || table[i].context != context) {
			i++;
			continue;
		}
		if (each != NULL && table[i].owner != 0)
			each(&table[i]);
		drop(i);
	}
}

/* --- figures -------------------------------------------------------------------------------------- */

void tm_track_total(unsigned device, struct tm_track_total *ret)
{
	*ret = totals[device < TM_TRACK_DEVICES ? device : TM_TRACK_DEVICES - 1];
}

unsigned tm_track_devices(void)
{
	return devices;
}

uint64_t tm_track_live(unsigned device)
{
	const uint64_t *live =
		totals[device < TM_TRACK_DEVICES ? device : TM_TRACK_DEVICES - 1].live_bytes;
	return live[TM_LEDGER_GPU_DEVICE] + live[TM_LEDGER_GPU_ASYNC] + live[TM_LEDGER_GPU_VMM] +
	       live[TM_LEDGER_GPU_ARRAY];
}

uint64_t tm_track_lost(void)
{
	return lost;
}

static bool is_visible(const struct tm_track_block *b)
{
	switch (b->key >> SPACE_SHIFT) {
	case TM_TRACK_ADDRESS:
		return b->kind == TM_LEDGER_GPU_PINNED || b->kind == TM_LEDGER_GPU_MANAGED;
	case TM_TRACK_REGISTERED: return true;
	default: return false;
	}
}

void tm_track_each_visible(void (*see)(uintptr_t start, uintptr_t end))
{
	size_t i;
	for (i = 0; table != NULL && i >> bits == 0; i++) {
		uintptr_t start = table[i].key & ((UINT64_C(1) << SPACE_SHIFT) - 1);
		if (table[i].key != 0 && is_visible(&table[i]))
			see(start, start + table[i].bytes);
	}
}

void tm_track_each(void (*see)(uint32_t row, uint32_t born_ms, void *arg), void *arg)
{
	size_t i;
	for (i = 0; table != NULL && i >> bits == 0; i++)
		if (table[i].key != 0 && counts(&table[i]))
			see(table[i].row, table[i].born_ms, arg);
}

void tm_track_fork_child(void)
{
	rows = NULL;
	rows_are_lent = false;
	row_count = 0;
	used = 0;
	limit = 0;
	table = NULL;
	count_of_rows = &own_count;
	lost_rows = &own_lost;
	__builtin_memset(row_index, 0, sizeof(row_index));
	__builtin_memset(totals, 0, sizeof(totals));
	devices = 0;
	lost = 0;
	own_lost = 0;
}

int tm_track_check(void)
{
	uint64_t live[TM_TRACK_KINDS] = {0};
	size_t i, seen = 0;
	unsigned kind, device;
	for (i = 0; table != NULL && i >> bits == 0; i++) {
		if (table[i].key == 0)
			continue;
		if (slot_for(table, bits, table[i].key) != i || table[i].kind >= TM_TRACK_KINDS)
			return __LINE__;
		if (counts(&table[i]))
			live[table[i].kind] += table[i].bytes;
		seen++;
	}
	if (seen != used)
		return __LINE__;
	for (kind = 0; kind < TM_TRACK_KINDS; kind++) {
		for (device = 0; device < devices; device++)
			live[kind] -= totals[device].live_bytes[kind];
		if (live[kind] != 0)
			return __LINE__;
	}
	return 0;
}
