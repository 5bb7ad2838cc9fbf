/* SPDX-License-Identifier: MIT */
#include "shim/heap/slot_set.h"

#include "shim/heap/span.h"

void tm_slot_set_list(struct tm_heap *h, const struct tm_granule *head, const uint64_t *bits)
{
	size_t slot_bytes = tm_class_bytes(head->klass);

	for (uint32_t word = tm_slot_set_words(head); word-- > 0;) {
		for (uint64_t rest = bits[word]; rest != 0;) {
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

void tm_slot_set_are_free(const struct tm_granule *head, const uint64_t *bits)
{
	if (head->side == NULL)
		return;
	for (uint32_t i = 0; i < head->nslots; i++)
		if (tm_slot_set_has(bits, i))
			tm_span_entry_set_free(head, i);
}
