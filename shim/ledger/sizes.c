/* SPDX-License-Identifier: MIT */
#include "shim/ledger/sizes.h"

#include "shim/base/hash.h"
#include "shim/base/ledger_format.h"
#include "shim/heap/size_class.h"
#include "shim/ledger/deep.h"
#include "shim/ledger/ledger.h"
#include "shim/os/lock.h"
#include "shim/os/mem.h"

#define SLOT_BITS 13
#define SLOTS (1u << SLOT_BITS)
_Static_assert(SLOTS >= 2 * TM_LEDGER_SIZES, "probes stay short");

static struct tm_lock lock = TM_LOCK_INIT(TM_RANK_SITES);
static uint16_t slot[SLOTS]; /* [atomic] number + 1 of the record of a size, by its hash */
static uint32_t count;       /* [lock] */

static struct tm_ledger_size *record_at(uint32_t n)
{
	return tm_ledger_area(TM_LEDGER_SIZES_AT + n * sizeof(struct tm_ledger_size),
			      sizeof(struct tm_ledger_size));
}

/* A record whose number is in a slot is populated: no call of tm_ledger_area is needed. */
static struct tm_ledger_size *find(struct tm_ledger_header *header, uint64_t size, size_t *ret_at)
{
	char *records = (char *)header + TM_LEDGER_SIZES_AT;

	for (size_t at = tm_hash_slot(size, SLOT_BITS);; at = (at + 1) % SLOTS) {
		uint16_t n = __atomic_load_n(&slot[at], __ATOMIC_ACQUIRE);
		struct tm_ledger_size *s = (struct tm_ledger_size *)(void *)records + n - 1;

		*ret_at = at;
		if (n == 0)
			return NULL;
		if (s->size == size)
			return s;
	}
}

static struct tm_ledger_size *make(struct tm_ledger_header *header, uint64_t size)
{
	struct tm_ledger_size *s;
	size_t at;

	tm_lock_acquire(&lock);
	s = find(header, size, &at);
	if (s == NULL && count < TM_LEDGER_SIZES && (s = record_at(count)) != NULL) {
		s->size = size;
		__atomic_store_n(&slot[at], (uint16_t)++count, __ATOMIC_RELEASE);
	}
	tm_lock_release(&lock);
	return s;
}

void tm_sizes_add(uint64_t size, unsigned tier)
{
	struct tm_ledger_header *header = tm_ledger_header();
	struct tm_ledger_size *s;
	size_t at;

	if (header == NULL || size == 0)
		return;
	s = find(header, size, &at);
	if (s == NULL)
		s = make(header, size);
	if (s == NULL) {
		__atomic_fetch_add(&header->sizes_lost, 1, __ATOMIC_RELAXED);
		return;
	}
	s->tier = tier;
	__atomic_fetch_add(&s->count, 1, __ATOMIC_RELAXED);
	uint32_t live = __atomic_add_fetch(&s->live, 1, __ATOMIC_RELAXED);
	uint32_t peak = __atomic_load_n(&s->peak, __ATOMIC_RELAXED);
	while (peak < live && !__atomic_compare_exchange_n(&s->peak, &peak, live, true,
							   __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

void tm_sizes_remove(uint64_t size)
{
	struct tm_ledger_header *header = tm_ledger_header();
	struct tm_ledger_size *s;
	size_t at;

	if (header == NULL || size == 0)
		return;
	s = find(header, size, &at);
	if (s != NULL)
		__atomic_fetch_sub(&s->live, 1, __ATOMIC_RELAXED);
}

/* --- slots ------------------------------------------------------------------------------------ */

/* [lock of samples.c] by record */
struct counted {
	uint32_t live;
	uint64_t ever;
};
static void *_Atomic census_at; /* TM_LEDGER_SIZES of them */
static struct counted *census;
static bool counting;

void tm_sizes_census_begin(void)
{
	counting = tm_ledger_header() != NULL && !tm_deep_is_wanted();
	if (counting)
		census = tm_mem_once(&census_at, TM_LEDGER_SIZES * sizeof(*census));
	counting = counting && census != NULL;
	if (counting)
		__builtin_memset(census, 0, count * sizeof(census[0]));
}

static struct tm_ledger_size *record_of(uint64_t size, size_t *ret_index)
{
	struct tm_ledger_header *header = tm_ledger_header();
	struct tm_ledger_size *s;
	size_t at;

	if (header == NULL)
		return NULL;
	s = find(header, size, &at);
	if (s == NULL)
		s = make(header, size);
	if (s == NULL)
		return NULL;
	*ret_index = (size_t)(s - record_at(0));
	return s;
}

void tm_sizes_census_slot(uint64_t size, unsigned tier)
{
	struct tm_ledger_size *s;
	size_t index;

	if (!counting || size < TM_SIZES_FROM || (s = record_of(size, &index)) == NULL)
		return;
	s->tier = tier;
	s->flags = TM_LEDGER_SIZE_SEEN;
	census[index].live++;
}

void tm_sizes_census_site(uint64_t size, uint64_t objects)
{
	struct tm_ledger_size *s;
	size_t index;

	if (!counting || size < TM_SIZES_FROM || size > TM_SLOT_MAX ||
	    (s = record_of(size, &index)) == NULL)
		return;
	s->flags = TM_LEDGER_SIZE_SEEN;
	census[index].ever += objects;
}

void tm_sizes_census_end(void)
{
	for (uint32_t i = 0; counting && i < count; i++) {
		struct tm_ledger_size *s = record_at(i);

		if (s == NULL || (s->flags & TM_LEDGER_SIZE_SEEN) == 0)
			continue;
		s->live = census[i].live;
		if (s->peak < s->live)
			s->peak = s->live;
		if (s->count < census[i].ever)
			s->count = census[i].ever;
		if (s->count < s->peak)
			s->count = s->peak;
	}
}

TM_AT_START_CODE void tm_sizes_init(void)
{
	tm_lock_register(&lock);
}

void tm_sizes_fork_child(void)
{
	__builtin_memset(slot, 0, sizeof(slot));
	count = 0;
}
