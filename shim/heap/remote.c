/* SPDX-License-Identifier: MIT */
#include "shim/heap/remote.h"

#include "shim/heap/zone.h"

void tm_remote_push(uintptr_t owner, struct tm_slot *first, struct tm_slot *last)
{
	struct tm_heap *h = (struct tm_heap *)owner;
	struct tm_slot *head = atomic_load_explicit(&h->remote, memory_order_relaxed);

	do {
		last->next = head;
	} while (!atomic_compare_exchange_weak_explicit(
		&h->remote, &head, first, memory_order_release, memory_order_relaxed));
}

TM_NOINLINE void tm_remote_hand_over(struct tm_magazine *m)
{
	uintptr_t owner = m->owner;
	struct tm_slot *first = m->first, *last = m->last;
	int32_t bytes = TM_MAGAZINE_ROOM - m->room;

	*m = (struct tm_magazine){0};
	if (first == NULL)
		return;
	tm_remote_push(owner, first, last);
	tm_heap_freed_for((struct tm_heap *)owner, (size_t)bytes);
}

void tm_remote_give(struct tm_heap *mine, uintptr_t owner, struct tm_slot *slot, uint16_t charge)
{
	struct tm_magazine *m = tm_remote_magazine(mine, owner);

	if (m->owner != owner) {
		tm_remote_hand_over(m);
		m->owner = owner;
		m->last = slot;
		m->room = TM_MAGAZINE_ROOM;
	}
	if (tm_remote_collect(m, slot, charge))
		tm_remote_hand_over(m);
}

void tm_remote_flush(struct tm_heap *mine)
{
	for (unsigned i = 0; i < TM_MAGAZINES; i++)
		if (mine->magazine[i].owner != 0)
			tm_remote_hand_over(&mine->magazine[i]);
}

size_t tm_remote_drain(struct tm_heap *h)
{
	struct tm_slot *slot = atomic_exchange_explicit(&h->remote, NULL, memory_order_acquire);
	size_t n = 0;

	while (slot != NULL) {
		struct tm_slot *next = slot->next;
		struct tm_granule *g = tm_zone_granule(slot);
		uintptr_t owner = tm_granule_owner(g) & ~TM_OWNER_BITS;
		struct tm_slot **list = (struct tm_slot **)((char *)h + g->list_offset);

		if (TM_LIKELY(owner == (uintptr_t)h)) {
			slot->next = *list;
			*list = slot;
		} else { /* its span has moved to another heap after the slot was sent here */
			tm_remote_push(owner, slot, slot);
		}
		slot = next;
		n++;
	}
	return n;
}
