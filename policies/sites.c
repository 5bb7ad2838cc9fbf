/* SPDX-License-Identifier: MIT */
/* sites: see sites.h. */
#include "policies/sites.h"

/* Value of a hash slot whose record is being written. */
#define PLACE_TAKEN UINT16_MAX
_Static_assert(TM_SITES_LIMIT + 4096 < PLACE_TAKEN, "some threads may pass the limit at once");

void tm_sites_init(struct tm_sites *sites, void *memory)
{
	sites->record = memory;
	sites->place = (_Atomic uint16_t *)(void *)(sites->record + TM_SITES_COUNT);
	atomic_store_explicit(&sites->used, 0, memory_order_relaxed);
	atomic_store_explicit(&sites->generation, 0, memory_order_relaxed);
}

static uint32_t first_place(uint64_t key)
{
	return (uint32_t)tm_hash_slot(key, TM_SITES_BITS);
}

static uint32_t next_place(uint32_t at)
{
	return (at + 1) & (TM_SITES_COUNT - 1);
}

static uint64_t key_of(const struct tm_sites *sites, uint16_t number)
{
	return atomic_load_explicit(&sites->record[number].key, memory_order_acquire);
}

uint16_t tm_sites_find(const struct tm_sites *sites, uint64_t key)
{
	uint32_t at = first_place(key);

	for (uint32_t n = 0; n < TM_SITES_COUNT; n++, at = next_place(at)) {
		uint16_t number = atomic_load_explicit(&sites->place[at], memory_order_acquire);

		if (number == 0)
			return 0;
		if (number != PLACE_TAKEN && key_of(sites, number) == key)
			return number;
	}
	return 0;
}

static uint16_t fill(struct tm_sites *sites, const struct tm_site_birth *birth)
{
	uint32_t number = atomic_fetch_add_explicit(&sites->used, 1, memory_order_relaxed) + 1;
	struct tm_site_record *r = &sites->record[number];

	r->return_address = birth->return_address;
	r->height = birth->height;
	r->parent = birth->parent;
	r->level = birth->level;
	r->size_log2 = birth->size_log2;
	atomic_store_explicit(&r->key, birth->key, memory_order_release);
	return (uint16_t)number;
}

uint16_t tm_sites_enter(struct tm_sites *sites, const struct tm_site_birth *birth)
{
	uint32_t at = first_place(birth->key);

	for (uint32_t n = 0; n < TM_SITES_COUNT; n++, at = next_place(at)) {
		uint16_t number = atomic_load_explicit(&sites->place[at], memory_order_acquire);

		if (number == 0) {
			if (atomic_load_explicit(&sites->used, memory_order_relaxed) >=
			    TM_SITES_LIMIT)
				return 0;
			if (atomic_compare_exchange_strong_explicit(
				    &sites->place[at], &number, PLACE_TAKEN, memory_order_acq_rel,
				    memory_order_acquire)) {
				number = fill(sites, birth);
				atomic_store_explicit(&sites->place[at], number,
						      memory_order_release);
				return number;
			}
		}
		/*
		 * Another thread is filling this slot, perhaps for the same key: this request goes
		 * without a record.
		 */
		if (number == PLACE_TAKEN)
			return 0;
		if (key_of(sites, number) == birth->key)
			return number;
	}
	return 0;
}

uint32_t tm_sites_end(const struct tm_sites *sites)
{
	return atomic_load_explicit(&sites->used, memory_order_acquire) + 1;
}

void tm_sites_forget(struct tm_sites *sites, uintptr_t begin, uintptr_t end)
{
	bool any = false;

	for (uint32_t at = 1; at < tm_sites_end(sites); at++) {
		struct tm_site_record *r = &sites->record[at];

		if (!tm_sites_is_live(r) || r->return_address <= begin || r->return_address > end)
			continue;
		atomic_store_explicit(&r->key, TM_SITES_WITHDRAWN, memory_order_release);
		any = true;
	}
	if (any)
		atomic_fetch_add_explicit(&sites->generation, 1, memory_order_release);
}
