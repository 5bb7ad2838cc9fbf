/* SPDX-License-Identifier: MIT */
#include "shim/heap/trim.h"

#include "shim/heap/arena.h"
#include "shim/heap/extent.h"
#include "shim/heap/look.h"
#include "shim/heap/pool.h"
#include "shim/heap/remote.h"
#include "shim/heap/slot_set.h"
#include "shim/heap/span.h"
#include "shim/os/mem.h"

/* A partly used span is searched for free pages if it has this many free bytes or more. */
#define PAGES_WORTH_BYTES ((size_t)8 << 10)

/* Special value of a span's `mark`, which otherwise counts its slots found on lists. */
#define MARK_OPENED UINT16_MAX /* its bitmap has all its free slots */

/* Parked slots are on no list, because their pages were given back. */
static struct tm_slot_set *set_of(const struct tm_granule *head)
{
	return head->parked;
}

uint32_t tm_trim_parked(const struct tm_granule *head)
{
	return head->parked == NULL ? 0 : (uint32_t)set_of(head)->count;
}

/* Unlinked first: a fork's child may lose the slots, but must not have them twice. */
static void unlink_parked(struct tm_heap *h, struct tm_granule *head)
{
	tm_slot_set_unlink(&h->look->parked[head->klass], set_of(head));
	head->parked = NULL;
	TM_SIGNAL_FENCE();
}

void tm_trim_forget(struct tm_heap *h, struct tm_granule *head)
{
	struct tm_slot_set *set = set_of(head);

	if (set == NULL)
		return;
	unlink_parked(h, head);
	tm_slot_set_free(set);
}

bool tm_trim_unpark(struct tm_heap *h, unsigned klass)
{
	struct tm_slot_set *set = h->look == NULL ? NULL : h->look->parked[klass];

	if (set == NULL)
		return false;
	unlink_parked(h, set->head);
	tm_slot_set_list(h, set);
	tm_slot_set_free(set);
	return h->list[klass] != NULL;
}

static uint32_t listed_when_empty(const struct tm_granule *g)
{
	return g->carved - tm_trim_parked(g);
}

/* left[class] is how many slots the spans have on lists if they are all empty. */
static void expect(struct tm_heap *h, size_t *left)
{
	for (struct tm_granule *g = tm_granule_at(h->span_first); g != NULL;
	     g = tm_granule_at(g->next)) {
		g->mark = 0;
		left[g->klass] += listed_when_empty(g);
	}
}

/*
 * Count the listed slots of each span in its `mark`. Returns how many slots were examined.
 */
static uint32_t count_free(struct tm_heap *h, size_t *left)
{
	uint32_t looks = 0;

	for (unsigned klass = 1; klass < TM_CLASSES; klass++)
		for (struct tm_slot *s = h->list[klass]; s != NULL && left[klass] != 0;
		     s = s->next) {
			struct tm_granule *head = tm_span_head(tm_zone_granule(s));

			looks++;
			head->mark++;
			left[klass]--;
		}
	return looks;
}

static bool is_empty(const struct tm_granule *head)
{
	return head->mark == listed_when_empty(head);
}

/* Remove the slots for which `drop` holds from all lists, at most left[class] of each class. */
static void filter_lists(struct tm_heap *h,
			 bool (*drop)(struct tm_granule *head, struct tm_slot *s), size_t *left)
{
	for (unsigned klass = 1; klass < TM_CLASSES; klass++) {
		struct tm_slot **link = &h->list[klass], *s = *link;

		for (; s != NULL && left[klass] != 0; s = s->next) {
			if (drop(tm_span_head(tm_zone_granule(s)), s)) {
				left[klass]--;
				h->trim_rest--;
				continue;
			}
			*link = s;
			link = &s->next;
		}
		*link = s;
	}
}

static bool of_empty_span(struct tm_granule *head, struct tm_slot *s)
{
	(void)s;
	return is_empty(head);
}

static size_t release_empty(struct tm_heap *h)
{
	size_t left[TM_CLASSES] = {0};
	struct tm_granule *next;
	size_t bytes = 0;
	bool any = false;

	for (struct tm_granule *g = tm_granule_at(h->span_first); g != NULL;
	     g = tm_granule_at(g->next)) {
		if (!is_empty(g))
			continue;
		left[g->klass] += listed_when_empty(g);
		any = true;
	}
	if (!any)
		return 0;
	filter_lists(h, of_empty_span, left);
	for (struct tm_granule *g = tm_granule_at(h->span_first); g != NULL; g = next) {
		next = tm_granule_at(g->next);
		if (!is_empty(g))
			continue;
		bytes += (size_t)g->granules << TM_GRANULE_SHIFT;
		tm_trim_forget(h, g);
		tm_span_release(h, g);
	}
	return bytes;
}

static uint32_t slot_of(const struct tm_granule *head, const struct tm_slot *s)
{
	return (uint32_t)tm_span_index(head, s);
}

static bool is_parked(struct tm_granule *head, struct tm_slot *s)
{
	return head->parked != NULL && tm_slot_set_has(set_of(head)->bits, slot_of(head, s));
}

/*
 * Give spans with enough free slots a bitmap, at first of all their free slots. False: there are
 * none.
 */
static bool open_spans(struct tm_heap *h)
{
	bool any = false;

	for (struct tm_granule *g = tm_granule_at(h->span_first); g != NULL;
	     g = tm_granule_at(g->next)) {
		if (g->mark * tm_class_bytes(g->klass) < PAGES_WORTH_BYTES ||
		    g->mark * 2u < g->carved || tm_pool_of_class(g->klass) != NULL)
			continue;
		if (g->parked == NULL) {
			struct tm_slot_set *set = tm_look_ready(h) ? tm_slot_set_make(g) : NULL;

			if (set == NULL)
				break;
			g->parked = set;
			tm_slot_set_link(&h->look->parked[g->klass], set);
		}
		g->mark = MARK_OPENED;
		any = true;
	}
	if (!any)
		return false;
	for (unsigned klass = 1; klass < TM_CLASSES; klass++) {
		for (struct tm_slot *s = h->list[klass]; s != NULL; s = s->next) {
			struct tm_granule *head = tm_span_head(tm_zone_granule(s));

			if (head->mark == MARK_OPENED)
				tm_slot_set_add(set_of(head)->bits, slot_of(head, s));
		}
	}
	return true;
}

/* The slots [first, last] that overlap the page at this offset. */
static void slots_of_page(const struct tm_granule *g, size_t offset, uint32_t *ret_first,
			  uint32_t *ret_last)
{
	size_t slot_bytes = tm_class_bytes(g->klass);

	*ret_first = (uint32_t)(offset / slot_bytes);
	*ret_last = (uint32_t)((offset + TM_PAGE_BYTES - 1) / slot_bytes);
	if (*ret_last >= g->nslots)
		*ret_last = g->nslots - 1u;
}

static bool page_is_free(const struct tm_granule *g, size_t offset)
{
	uint32_t first, last;

	slots_of_page(g, offset, &first, &last);
	if (first < tm_span_first(g) || first >= g->nslots)
		return false;
	for (uint32_t i = first; i <= last; i++)
		if (!tm_slot_set_has(set_of(g)->bits, i))
			return false;
	return true;
}

/*
 * Keep in the bitmap only slots that overlap a page to be given back. Returns the bytes of those
 * pages.
 */
static size_t settle_span(struct tm_granule *g, uint64_t *page_bits, size_t pages)
{
	struct tm_slot_set *parked = g->parked;
	size_t bytes = 0;

	for (size_t page = 0; page < pages; page++) {
		if (!page_is_free(g, page * TM_PAGE_BYTES))
			continue;
		page_bits[page / 64] |= UINT64_C(1) << (page % 64);
		bytes += TM_PAGE_BYTES;
	}
	parked->count = 0;
	for (uint32_t i = tm_span_first(g); i < g->nslots; i++) {
		size_t begin = (size_t)i * tm_class_bytes(g->klass);
		size_t end = begin + tm_class_bytes(g->klass) - 1;
		bool loses = false;

		if (!tm_slot_set_has(parked->bits, i))
			continue;
		for (size_t page = begin / TM_PAGE_BYTES; page <= end / TM_PAGE_BYTES; page++)
			loses |= (page_bits[page / 64] >> (page % 64) & 1) != 0;
		if (loses)
			parked->count++;
		else
			tm_slot_set_remove(parked->bits, i);
	}
	return bytes;
}

static void give_pages(struct tm_granule *g, const uint64_t *page_bits, size_t pages)
{
	for (size_t page = 0; page < pages;) {
		size_t end = page;

		while (end < pages && (page_bits[end / 64] >> (end % 64) & 1) != 0)
			end++;
		if (end == page) {
			page++;
			continue;
		}
		/* refused (locked pages): the pages stay, which costs memory only */
		tm_mem_dontneed_raw(tm_span_base(g) + page * TM_PAGE_BYTES,
				    (end - page) * TM_PAGE_BYTES);
		page = end;
	}
}

#define SPAN_PAGES_MAX (8u * (unsigned)(TM_GRANULE_BYTES / TM_PAGE_BYTES))

static size_t park_pages(struct tm_heap *h)
{
	uint64_t page_bits[SPAN_PAGES_MAX / 64];
	size_t left[TM_CLASSES] = {0};
	size_t bytes = 0;

	if (!open_spans(h))
		return 0;
	/*
	 * first decide for all spans, then take the slots off the lists, then give the pages back
	 */
	for (int pass = 0; pass < 2; pass++) {
		for (struct tm_granule *g = tm_granule_at(h->span_first); g != NULL;
		     g = tm_granule_at(g->next)) {
			size_t pages = g->granules * (TM_GRANULE_BYTES / TM_PAGE_BYTES);

			if (g->mark != MARK_OPENED || g->parked == NULL)
				continue;
			__builtin_memset(page_bits, 0, sizeof(page_bits));
			size_t span_bytes = settle_span(g, page_bits, pages);
			if (pass == 0) {
				bytes += span_bytes;
				left[g->klass] += tm_trim_parked(g);
				continue;
			}
			if (tm_trim_parked(g) == 0)
				tm_trim_forget(h, g);
			else
				give_pages(g, page_bits, pages);
		}
		if (pass == 0)
			filter_lists(h, is_parked, left);
	}
	return bytes;
}

size_t tm_trim_heap(struct tm_heap *h)
{
	size_t left[TM_CLASSES] = {0};
	size_t bytes, arena_bytes;

	tm_look_end(h);
	tm_remote_flush(h);
	if (tm_remote_waits(h))
		tm_remote_drain(h);
	arena_bytes = tm_arena_trim(h);
	h->first_slot_frees = 0;
	h->trim_rest = 0;
	if (h->span_count == 0)
		return arena_bytes;
	expect(h, left);
	h->trim_rest = count_free(h, left);
	h->trim_looks += h->trim_rest;
	bytes = release_empty(h);
	if (bytes != 0)
		h->look_spans = h->span_count + h->span_count / 8;
	return bytes + park_pages(h) + arena_bytes;
}
