/* SPDX-License-Identifier: MIT */
#include "shim/heap/inherit.h"

#include "shim/heap/account.h"
#include "shim/heap/look.h"
#include "shim/heap/remote.h"
#include "shim/heap/span.h"
#include "shim/heap/trim.h"

/* A child that has freed this many slots will run on: the rest is marked at once. */
#define FREES_BY_CLASS 64u

bool tm_inherit_lost;

void tm_inherit_begin(struct tm_heap *h)
{
	tm_inherit_lost = true;
	if (h->self == 0)
		return;
	h->self = TM_HEAP_INHERITED;
	h->inherited_frees = 0;
	__builtin_memset(h->inherited_done, 0, sizeof(h->inherited_done));
}

/*
 * Mark the slots of one list, of this heap or, if NULL, of any. The last stores of a thread that
 * vanished in the fork may be missing: at the first slot that is not of this heap and class the rest
 * of the list is dropped.
 */
static void settle_list(const struct tm_heap *h, unsigned klass, struct tm_slot **list)
{
	for (struct tm_slot **link = list; *link != NULL; link = &(*link)->next) {
		struct tm_granule *g = tm_zone_contains(*link) ? tm_zone_granule(*link) : NULL;
		int32_t index;

		if (g == NULL ||
		    (h != NULL && (tm_granule_owner(g) & ~TM_OWNER_BITS) != (uintptr_t)h) ||
		    g->kind == TM_SPAN_NONE || g->klass != klass ||
		    (index = tm_span_index(tm_span_head(g), *link)) < 0) {
			*link = NULL;
			return;
		}
		tm_span_entry_set_free(tm_span_head(g), (uint32_t)index);
	}
}

/* The first slot of a chain leads to the next chain. */
static void settle_strays(struct tm_slot **first, unsigned klass)
{
	struct tm_slot *chain;

	settle_list(NULL, klass, first);
	for (chain = *first; chain != NULL; chain = chain->entry) {
		struct tm_slot *next = chain->entry;

		settle_list(NULL, klass, &next);
		chain->entry = next;
	}
}

static void settle_lists(struct tm_heap *h, unsigned klass)
{
	settle_list(h, klass, &h->list[klass]);
	if (h->look == NULL || klass >= TM_CLASSES)
		return;
	settle_list(h, klass, &h->look->rest[klass]);
	if (h->look->klass == klass)
		settle_list(h, klass, &h->look->kept);
	settle_strays(&h->look->stray[klass], klass);
	tm_look_marked_are_free(h, klass);
}

void tm_inherit_settle_all(struct tm_heap *h)
{
	if (tm_remote_waits(h))
		tm_remote_drain(h);
	for (unsigned klass = 1; klass < TM_LISTS; klass++)
		settle_lists(h, klass);
	h->self = (uintptr_t)h;
}

static void settle_own(struct tm_heap *h, unsigned klass)
{
	uint64_t *done = &h->inherited_done[klass / 64], bit = UINT64_C(1) << klass % 64;

	if (++h->inherited_frees >= FREES_BY_CLASS) {
		tm_inherit_settle_all(h);
		return;
	}
	if (tm_remote_waits(h))
		tm_remote_drain(h);
	if ((*done & bit) != 0)
		return;
	settle_lists(h, klass);
	*done |= bit;
}

bool tm_inherit_settle(struct tm_heap *owner, struct tm_heap *mine, unsigned klass)
{
	if (mine == NULL)
		return false;
	if (owner == mine) {
		settle_own(owner, klass);
		return true;
	}
	/* its thread does not exist in this process; whoever adopts the heap does the same */
	tm_heap_lock();
	if (tm_inherit_is_open(owner))
		tm_inherit_settle_all(owner);
	tm_heap_unlock();
	return true;
}
