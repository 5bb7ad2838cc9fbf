/* SPDX-License-Identifier: MIT */
#include "shim/heap/tcache.h"

#include "shim/heap/arena.h"
#include "shim/heap/inherit.h"
#include "shim/heap/look.h"
#include "shim/heap/pool.h"
#include "shim/heap/remote.h"
#include "shim/heap/span.h"
#include "shim/os/clock.h"

/* A trim is worth it after this many frees of a span's first slot, plus an eighth of the spans. */
#define TRIM_LOOK_MIN 16u

/*
 * Write the entry of an object of this heap; without the account only that it is in use. Returns
 * its row's id.
 */
static unsigned mark_used(struct tm_heap *h, unsigned klass, void *entry, size_t requested,
			  struct tm_site site)
{
	if (tm_account_is_kept)
		return tm_account_mark(h, klass, entry, requested, site);
	if (klass < TM_SMALL_CLASSES)
		((struct tm_entry3 *)entry)->id = 0;
	else
		*(tm_entry8 *)entry = tm_entry8_make(0, 0, requested);
	return 0;
}

void *tm_tcache_refill(struct tm_heap *h, unsigned klass, size_t requested, struct tm_site site)
{
	if (klass == 0)
		klass = 1;
	/*
	 * A refill samples for all slots that it gives. A small request that came here only because
	 * its site was new is not sampled.
	 */
	bool stands = h->list[klass] == NULL || klass >= TM_SMALL_CLASSES;
	if (h->list[klass] == NULL) {
		int filled = tm_span_fill(h, klass);

		if (filled < 0)
			return NULL;
		klass = (unsigned)filled;
	}

	struct tm_slot *slot = h->list[klass];
	struct tm_granule *head = tm_span_head(tm_zone_granule(slot));
	if (head->side != NULL) {
		unsigned id = mark_used(h, head->klass, slot->entry, requested, site);

		if (stands && tm_account_is_kept)
			tm_account_sample(h, id, requested, site);
	}
	h->list[klass] = slot->next;
	return slot;
}

void *tm_tcache_stand_in(struct tm_heap *h, unsigned klass, size_t requested, struct tm_site site)
{
	unsigned other = 0;

	if (tm_pool_of_class(klass) == NULL)
		other = tm_span_stand_in(h, klass, TM_SLOT_MAX);
	return other == 0 ? NULL : tm_tcache_refill(h, other, requested, site);
}

static bool mark_free(const struct tm_granule *head, void *entry)
{
	if (head->kind == TM_SPAN_SMALL) {
		struct tm_entry3 *e = entry;

		if (e->id == TM_ENTRY_FREE)
			return false;
		e->id = TM_ENTRY_FREE;
	} else {
		tm_entry8 *e = entry;

		if ((*e & 0xffff) == TM_ENTRY_FREE)
			return false;
		*e |= TM_ENTRY_FREE;
	}
	return true;
}

enum tm_give_result tm_tcache_give_any(struct tm_heap *mine, void *p, struct tm_granule *g)
{
	struct tm_granule *head = tm_span_head(g);
	struct tm_slot *slot = p;
	uintptr_t owner = g->owner & ~TM_OWNER_BITS;
	int32_t index = tm_span_index(head, p);

	if (index < 0)
		return TM_GIVE_INTERIOR;
	/*
	 * no object starts in this line of an arena; in a raw fork's child the entry does not say
	 * so
	 */
	if (tm_span_slot_bytes(head, (uint32_t)index) == 0)
		return TM_GIVE_INTERIOR;
	if (tm_inherit_is_open((struct tm_heap *)owner) && head->side != NULL &&
	    !tm_inherit_settle((struct tm_heap *)owner, mine, head->klass))
		/* lost rather than handed out twice */
		return TM_GIVE_DONE;
	if (head->side != NULL) {
		void *entry = tm_span_entry(head, (uint32_t)index);

		if (!mark_free(head, entry))
			return TM_GIVE_DOUBLE;
		slot->entry = entry;
	}
	if ((g->owner & TM_OWNER_TAINTED) != 0) {
		void *entry = slot->entry;

		tm_span_cleanse(head, p);
		slot->entry = entry;
	}
	if (mine == NULL) {
		tm_remote_push(owner, slot, slot);
		return TM_GIVE_DONE;
	}
	if ((uintptr_t)mine != owner) {
		tm_remote_give(mine, owner, slot, head->charge);
		return TM_GIVE_DONE;
	}
	if (index != 0) {
		slot->next = mine->list[head->klass];
		mine->list[head->klass] = slot;
		if (tm_arena_is(head) && mine->arena_left < 0)
			tm_arena_noted(mine);
		return TM_GIVE_DONE;
	}
	/*
	 * Put aside until a list runs dry, or else a loop that allocates and frees one object would
	 * always come here.
	 */
	tm_remote_push((uintptr_t)mine, slot, slot);
	mine->first_slot_frees++;
	if (tm_look_is_on(mine))
		return TM_GIVE_TRIM;
	if (mine->first_slot_frees >= TRIM_LOOK_MIN + mine->span_count / 8 &&
	    tm_clock_ms() >= mine->next_look_ms) {
		mine->first_slot_frees = 0;
		return TM_GIVE_TRIM;
	}
	return TM_GIVE_DONE;
}

size_t tm_tcache_usable(const void *p, struct tm_granule *g)
{
	struct tm_granule *head = tm_span_head(g);

	int32_t index = tm_span_index(head, p);

	return index < 0 ? 0 : tm_span_slot_bytes(head, (uint32_t)index);
}

void tm_tcache_resized(struct tm_heap *mine, void *p, struct tm_granule *g, size_t requested,
		       struct tm_site site)
{
	struct tm_granule *head = tm_span_head(g);
	int32_t index = tm_span_index(head, p);

	if (head->side == NULL || index < 0)
		return;
	if ((uintptr_t)mine == (g->owner & ~TM_OWNER_BITS)) {
		mark_used(mine, head->klass, tm_span_entry(head, (uint32_t)index), requested, site);
		return;
	}
	/* another heap's slot: its id names a row of that heap, so only the size changes */
	void *entry = tm_span_entry(head, (uint32_t)index);
	if (head->kind == TM_SPAN_SMALL) {
		struct tm_entry3 *e = entry;

		if (tm_account_is_kept)
			e->id = (uint16_t)((e->id & ~15u) | (requested & 15));
	} else {
		tm_entry8 *e = entry;

		*e = (*e & 0xffffff) | (tm_entry8)requested << 24;
	}
}
