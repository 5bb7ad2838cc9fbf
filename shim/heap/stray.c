/* SPDX-License-Identifier: MIT */
#include "shim/heap/stray.h"

#include "shim/base/bits.h"
#include "shim/heap/inherit.h"
#include "shim/heap/remote.h"
#include "shim/heap/span.h"
#include "shim/heap/trim.h"

/* Work of moving a span, and how many of its slots are worth one more. */
#define SPAN_WORK 4u
#define ENTRIES_A_WORK 16u

/* A request takes so many slots; strays are examined in pieces of this length. */
#define SLICE_SLOTS 256u

static void spend(uint32_t *work, uint32_t n)
{
	*work = *work > n ? *work - n : 0;
}

static void push(struct tm_look *look, unsigned klass, struct tm_slot *chain)
{
	chain->entry = look->stray[klass];
	TM_SIGNAL_FENCE();
	look->stray[klass] = chain;
}

/* Cut up to `slots` off the first chain. */
static struct tm_slot *cut(struct tm_look *look, unsigned klass, unsigned slots)
{
	struct tm_slot *first = look->stray[klass], *last = first, *rest = first->entry;

	while (--slots != 0 && last->next != NULL)
		last = last->next;
	if (last->next != NULL) {
		last->next->entry = rest;
		rest = last->next;
	}
	look->stray[klass] = rest;
	TM_SIGNAL_FENCE();
	last->next = NULL;
	return first;
}

/* Free slots of the class that are on lists become strays. */
static void scatter(struct tm_heap *h, unsigned klass)
{
	struct tm_slot **source[] = {&h->look->rest[klass], &h->list[klass]};

	tm_look_leave(h, klass);
	for (unsigned i = 0; i < TM_ARRAY_LEN(source); i++) {
		struct tm_slot *chain = *source[i];

		*source[i] = NULL;
		TM_SIGNAL_FENCE();
		if (chain != NULL)
			push(h->look, klass, chain);
	}
}

static uintptr_t owner_of(struct tm_granule *g)
{
	return tm_granule_owner(g) & ~TM_OWNER_BITS;
}

/*
 * Sort strays of `h` until `slots` are found that are `to`'s, which go to its list. With `known`
 * the spans that `h` still has move to `to`.
 */
static void sort(struct tm_heap *h, struct tm_heap *to, unsigned klass, unsigned slots,
		 uint32_t *work, struct tm_span_rows *known)
{
	while (slots != 0 && *work != 0 && h->look->stray[klass] != NULL) {
		struct tm_slot *slot =
			cut(h->look, klass, (unsigned)tm_bits_min(slots, SLICE_SLOTS));
		struct tm_slot *own = NULL, **end = &own, *next;

		for (; slot != NULL && *work != 0; slot = next) {
			struct tm_granule *head = tm_span_head(tm_zone_granule(slot));
			uint32_t index = (uint32_t)tm_span_index(head, slot);

			next = slot->next;
			spend(work, 1);
			to->trim_looks++;
			slot->entry = head->side == NULL ? NULL : tm_span_entry(head, index);
			if (TM_UNLIKELY(tm_inherit_lost) && head->side != NULL)
				tm_span_entry_set_free(head, index);
			if (known != NULL && owner_of(head) == (uintptr_t)h) {
				spend(work, SPAN_WORK + head->nslots / ENTRIES_A_WORK);
				spend(work, tm_span_move(h, to, head, known));
			}
			if (owner_of(head) != (uintptr_t)to) {
				tm_remote_push(owner_of(head), slot, slot);
				continue;
			}
			*end = slot;
			end = &slot->next;
			slots--;
		}
		*end = to->list[klass];
		TM_SIGNAL_FENCE();
		to->list[klass] = own;
		if (slot != NULL)
			push(h->look, klass, slot);
	}
}

/* Take a span whose slots are on no list. */
static bool take_marked(struct tm_heap *from, struct tm_heap *to, unsigned klass,
			struct tm_span_rows *known)
{
	struct tm_slot_set *set = from->look->looked[klass];

	if (set == NULL)
		set = from->look->parked[klass];
	if (set == NULL)
		return false;
	(void)tm_span_move(from, to, set->head, known);
	return tm_look_refill(to, klass) || tm_trim_unpark(to, klass);
}

bool tm_stray_take(struct tm_heap *from, struct tm_heap *to, unsigned klass, uint32_t *work)
{
	struct tm_span_rows *known = tm_span_rows_clear();

	scatter(from, klass);
	sort(from, to, klass, SLICE_SLOTS, work, known);
	if (to->list[klass] == NULL && !take_marked(from, to, klass, known))
		return false;
	/* the span being carved, which has room although it may have no free slot */
	if (from->current[klass] != 0)
		(void)tm_span_move(from, to, tm_granule_at(from->current[klass]), known);
	return true;
}

bool tm_stray_refill(struct tm_heap *h, unsigned klass)
{
	uint32_t work = TM_STRAY_WORK;

	sort(h, h, klass, SLICE_SLOTS, &work, NULL);
	return h->list[klass] != NULL;
}

void tm_stray_settle(struct tm_heap *h, uint32_t *work)
{
	for (unsigned klass = 1; h->look != NULL && klass < TM_CLASSES; klass++)
		sort(h, h, klass, UINT32_MAX, work, NULL);
}

void tm_stray_settle_all(struct tm_heap *h)
{
	uint32_t work;

	for (unsigned klass = 1; h->look != NULL && klass < TM_CLASSES; klass++)
		while (h->look->stray[klass] != NULL) {
			work = UINT32_MAX;
			sort(h, h, klass, UINT32_MAX, &work, NULL);
		}
}
