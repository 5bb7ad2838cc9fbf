/* SPDX-License-Identifier: MIT */
#include "shim/heap/slot_set.h"

#include "shim/heap/meta.h"
#include "shim/heap/span.h"

static size_t bytes_of(const struct tm_granule *head)
{
	return sizeof(struct tm_slot_set) + tm_slot_set_words(head) * sizeof(uint64_t);
}

struct tm_slot_set *tm_slot_set_make(struct tm_granule *head)
{
	struct tm_slot_set *set = tm_meta_alloc(bytes_of(head), sizeof(uint64_t));

	if (set != NULL)
		set->head = head;
	return set;
}

void tm_slot_set_free(struct tm_slot_set *set)
{
	tm_meta_free(set, bytes_of(set->head), sizeof(uint64_t));
}

void tm_slot_set_link(struct tm_slot_set **list, struct tm_slot_set *set)
{
	set->prev = NULL;
	set->next = *list;
	if (set->next != NULL)
		set->next->prev = set;
	TM_SIGNAL_FENCE();
	*list = set;
}

void tm_slot_set_unlink(struct tm_slot_set **list, struct tm_slot_set *set)
{
	struct tm_slot_set **link = list;

	if (set->next != NULL)
		set->next->prev = set->prev;
	TM_SIGNAL_FENCE();
	if (*link != set && set->prev != NULL && set->prev->next == set)
		link = &set->prev->next;
	while (*link != NULL && *link != set)
		link = &(*link)->next;
	if (*link == set)
		*link = set->next;
}

void tm_slot_set_list(struct tm_heap *h, const struct tm_slot_set *set)
{
	const struct tm_granule *head = set->head;
	size_t slot_bytes = tm_class_bytes(head->klass);

	for (uint32_t word = tm_slot_set_words(head); word-- > 0;) {
		for (uint64_t rest = set->bits[word]; rest != 0;) {
			unsigned bit = 63u - (unsigned)__builtin_clzl(rest);
			uint32_t index = word * 64 + bit;
			struct tm_slot *slot =
				(struct tm_slot *)(void *)(tm_span_base(head) + index * slot_bytes);

			rest &= ~(UINT64_C(1) << bit);
			slot->entry = head->side == NULL ? NULL : tm_span_entry(head, index);
			slot->next = h->list[head->klass];
			h->list[head->klass] = slot;
		}
	}
}

void tm_slot_set_are_free(const struct tm_slot_set *list)
{
	for (const struct tm_slot_set *set = list; set != NULL; set = set->next)
		for (uint32_t i = 0; set->head->side != NULL && i < set->head->nslots; i++)
			if (tm_slot_set_has(set->bits, i))
				tm_span_entry_set_free(set->head, i);
}

int tm_slot_set_check(const struct tm_heap *h, unsigned klass, const struct tm_slot_set *list)
{
	for (const struct tm_slot_set *set = list; set != NULL; set = set->next) {
		uint32_t n = 0;

		if (set->head->klass != klass ||
		    (set->head->owner & ~TM_OWNER_BITS) != (uintptr_t)h)
			return __LINE__;
		if ((set->next != NULL && set->next->prev != set) ||
		    (set->prev == NULL) != (set == list))
			return __LINE__;
		for (uint32_t word = 0; word < tm_slot_set_words(set->head); word++)
			n += (uint32_t)__builtin_popcountl(set->bits[word]);
		if (n != set->count)
			return __LINE__;
	}
	return 0;
}
