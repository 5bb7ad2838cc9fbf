/* SPDX-License-Identifier: MIT */
#include "shim/ledger/ledger_granules.h"

#include "shim/base/ledger_format.h"
#include "shim/heap/span.h"
#include "shim/heap/tier.h"
#include "shim/heap/zone.h"
#include "shim/ledger/ledger.h"
#include "shim/ledger/ledger_areas.h"
#include "shim/ledger/sizes.h"

/* The same for a granule in use: counts those that can't be recorded. */
static struct tm_ledger_granule *record_for(const struct tm_granule *head)
{
	struct tm_ledger_header *header = tm_ledger_header();
	struct tm_ledger_granule *r = tm_ledger_record(head);

	if (r == NULL && header != NULL)
		__atomic_fetch_add(&header->private_bytes, sizeof(*r), __ATOMIC_RELAXED);
	return r;
}

/* Slots are the session tier's unless their span says otherwise. */
static uint8_t tier_of(const struct tm_granule *head)
{
	return (uint8_t)(head->tier != 0 ? head->tier : TM_TIER_SESSION);
}

void tm_ledger_note_span(const struct tm_granule *head)
{
	const struct tm_heap *h = (const struct tm_heap *)(head->owner & ~TM_OWNER_BITS);
	struct tm_ledger_granule *r;
	uint64_t offset;

	if (!tm_ledger_side_offset(head->side, &offset) || (r = record_for(head)) == NULL)
		return;
	r->heap = (uint16_t)h->index;
	r->slot_bytes = (uint32_t)tm_class_bytes(head->klass);
	r->slots = head->nslots;
	r->first = (uint16_t)tm_span_first(head);
	r->at = offset;
	r->tier = tier_of(head);
	TM_SIGNAL_FENCE();
	r->kind = head->kind == TM_SPAN_SMALL ? TM_LEDGER_SMALL : TM_LEDGER_MEDIUM;
}

void tm_ledger_note_gone(const struct tm_granule *head)
{
	struct tm_ledger_granule *r = tm_ledger_record(head);

	if (r == NULL)
		return;
	if (r->kind == TM_LEDGER_BLOCK)
		tm_sizes_remove(r->at);
	r->kind = TM_LEDGER_NOTHING;
}

void tm_ledger_note_block(const struct tm_granule *head)
{
	struct tm_ledger_granule *r = record_for(head);

	if (r == NULL)
		return;
	r->heap = (uint16_t)(head->large.account >> 24);
	r->id = (uint16_t)head->large.account;
	r->epoch8 = (uint8_t)(head->large.account >> 16);
	r->slot_bytes = (uint32_t)head->large.pages;
	r->first = (uint16_t)(head->large.page % TM_GRANULE_PAGES);
	r->at = head->large.requested;
	r->tier = tier_of(head);
	tm_sizes_add(r->at, r->tier);
	TM_SIGNAL_FENCE();
	r->kind = TM_LEDGER_BLOCK;
}

void tm_ledger_publish(void)
{
	struct tm_ledger_header *header = tm_ledger_header();
	size_t granules = tm_zone.len >> TM_GRANULE_SHIFT;
	uint64_t offset;

	for (size_t i = 0; (i = tm_zone_pass(i, granules)) < granules; i++) {
		struct tm_granule *g = &tm_zone.granules[i];
		uintptr_t owner = tm_granule_owner(g);

		if (owner == TM_OWNER_LARGE) {
			tm_ledger_note_block(g);
			/* It may have been freed before its free could tell us. */
			__atomic_thread_fence(__ATOMIC_SEQ_CST);
			if (tm_granule_owner(g) != TM_OWNER_LARGE)
				tm_ledger_note_gone(g);
		} else if (owner != TM_OWNER_NONE && g->head == i + 1) {
			tm_ledger_note_span(g);
			if (!tm_ledger_side_offset(g->side, &offset))
				header->before_span_bytes += (uint64_t)g->granules
							     << TM_GRANULE_SHIFT;
		}
	}
}
