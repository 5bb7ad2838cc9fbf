/* SPDX-License-Identifier: MIT */
#include "shim/heap/remote.h"

#include "shim/heap/zone.h"

/* One atomic operation for this many slots: at most .1 per pair is the goal, this is .03. */
#define MAGAZINE_SLOTS 32u
/* ... and no more memory than this out of its owner's reach. */
#define MAGAZINE_BYTES (64u << 10)

void tm_remote_push(uintptr_t owner, struct tm_slot *first, struct tm_slot *last)
{
	struct tm_heap *h = (struct tm_heap *)owner;
	struct tm_slot *head = atomic_load_explicit(&h->remote, memory_order_relaxed);

	do {
		last->next = head;
	} while (!atomic_compare_exchange_weak_explicit(
		&h->remote, &head, first, memory_order_release, memory_order_relaxed));
}

static void hand_over(struct tm_magazine *m)
{
	uintptr_t owner = m->owner;
	struct tm_slot *first = m->first, *last = m->last;
	size_t bytes = m->bytes;

	m->owner = 0;
	m->first = NULL;
	m->last = NULL;
	m->slots = 0;
	m->bytes = 0;
	if (first == NULL)
		return;
	tm_remote_push(owner, first, last);
	tm_heap_freed_for((struct tm_heap *)owner, bytes);
}

void tm_remote_give(struct tm_heap *mine, uintptr_t owner, struct tm_slot *slot, size_t slot_bytes)
{
	struct tm_magazine *m = &mine->magazine[(owner / TM_HEAP_STRIDE) % TM_MAGAZINES];

	if (m->owner != owner) {
		if (m->owner != 0)
			hand_over(m);
		m->owner = owner;
		m->last = slot;
	}
	slot->next = m->first;
	m->first = slot;
	m->slots++;
	m->bytes += (uint32_t)slot_bytes;
	if (m->slots >= MAGAZINE_SLOTS || m->bytes >= MAGAZINE_BYTES)
		hand_over(m);
}

void tm_remote_flush(struct tm_heap *mine)
{
	for (unsigned i = 0; i < TM_MAGAZINES; i++)
		if (mine->magazine[i].owner != 0)
			hand_over(&mine->magazine[i]);
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
