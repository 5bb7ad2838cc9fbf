/* SPDX-License-Identifier: MIT */
/* sites: see sites.h. */
#include "policies/sites.h"

/* A record that was withdrawn keeps its place, so that chains of probes stay whole. */
#define KEY_WITHDRAWN UINT64_C(1)

void tm_sites_init(struct tm_sites *sites, void *memory)
{
	sites->record = memory;
	atomic_store_explicit(&sites->used, 0, memory_order_relaxed);
	atomic_store_explicit(&sites->generation, 0, memory_order_relaxed);
}

static uint32_t first_place(uint64_t key)
{
	return (uint32_t)tm_hash_slot(key, TM_SITES_BITS);
}

/* Place 0 stands for "no record" and stays empty. */
static uint32_t next_place(uint32_t at)
{
	at = (at + 1) & (TM_SITES_COUNT - 1);
	return at ? at : 1;
}

uint16_t tm_sites_find(const struct tm_sites *sites, uint64_t key)
{
	uint32_t at = first_place(key);

	at = at ? at : 1;
	for (uint32_t n = 0; n < TM_SITES_COUNT; n++, at = next_place(at)) {
		const struct tm_site_record *r = &sites->record[at];
		uint64_t have = atomic_load_explicit(&r->key, memory_order_acquire);

		if (have == 0)
			return 0;
		if (have == key)
			return atomic_load_explicit(&r->ready, memory_order_acquire) ? (uint16_t)at
										     : 0;
	}
	return 0;
}

static void fill(struct tm_site_record *r, const struct tm_site_birth *birth)
{
	r->return_address = birth->return_address;
	r->height = birth->height;
	r->parent = birth->parent;
	r->level = birth->level;
	r->size_log2 = birth->size_log2;
	atomic_store_explicit(&r->ready, 1, memory_order_release);
}

/* Another thread may be just about to fill the record: then this request does without. */
static uint16_t if_ready(const struct tm_site_record *r, uint32_t at)
{
	return atomic_load_explicit(&r->ready, memory_order_acquire) ? (uint16_t)at : 0;
}

uint16_t tm_sites_enter(struct tm_sites *sites, const struct tm_site_birth *birth)
{
	uint32_t at = first_place(birth->key);

	at = at ? at : 1;
	for (uint32_t n = 0; n < TM_SITES_COUNT; n++, at = next_place(at)) {
		struct tm_site_record *r = &sites->record[at];
		uint64_t have = atomic_load_explicit(&r->key, memory_order_acquire);

		if (have == birth->key)
			return if_ready(r, at);
		if (have != 0)
			continue;
		if (atomic_load_explicit(&sites->used, memory_order_relaxed) >= TM_SITES_LIMIT)
			return 0;
		if (atomic_compare_exchange_strong_explicit(&r->key, &have, birth->key,
							    memory_order_acq_rel,
							    memory_order_acquire)) {
			atomic_fetch_add_explicit(&sites->used, 1, memory_order_relaxed);
			fill(r, birth);
			return (uint16_t)at;
		}
		if (have == birth->key)
			return if_ready(r, at);
	}
	return 0;
}

void tm_sites_forget(struct tm_sites *sites, uintptr_t begin, uintptr_t end)
{
	bool any = false;

	for (uint32_t at = 1; at < TM_SITES_COUNT; at++) {
		struct tm_site_record *r = &sites->record[at];

		if (atomic_load_explicit(&r->key, memory_order_acquire) <= KEY_WITHDRAWN ||
		    !atomic_load_explicit(&r->ready, memory_order_acquire) ||
		    r->return_address <= begin || r->return_address > end)
			continue;
		atomic_store_explicit(&r->key, KEY_WITHDRAWN, memory_order_release);
		any = true;
	}
	if (any)
		atomic_fetch_add_explicit(&sites->generation, 1, memory_order_release);
}
