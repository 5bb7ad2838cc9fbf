/* SPDX-License-Identifier: MIT */
#include "shim/heap/look.h"

#include "shim/heap/arena.h"
#include "shim/heap/inherit.h"
#include "shim/heap/meta.h"
#include "shim/heap/remote.h"
#include "shim/heap/slot_set.h"
#include "shim/heap/span.h"
#include "shim/heap/stray.h"
#include "shim/heap/trim.h"

/* Work of examining a span, of so many of its entries, and of releasing it. */
#define SPAN_WORK 4u
#define ENTRIES_A_WORK 16u
#define RELEASE_WORK 128u

/* Slots are examined only if more than this share of the spans may be wholly free. */
#define EMPTY_SHARE 32u

/* A list that runs empty gets so many slots that were not examined yet. */
#define SLICE_SLOTS 64u

/* A span's `mark` during a look. */
#define MARK_CANDIDATE 1u

static void set_state(struct tm_heap *h, enum tm_look_state state)
{
	__atomic_store_n(&h->look_state, (uint8_t)state, __ATOMIC_RELAXED);
}

static void spend(uint32_t *work, uint32_t n)
{
	*work = *work > n ? *work - n : 0;
}

/* --- marked slots ----------------------------------------------------------------------------- */

static struct tm_slot_set *make_looked(struct tm_heap *h, struct tm_granule *head)
{
	struct tm_slot_set *set = tm_slot_set_make(head);

	if (set == NULL)
		return NULL;
	head->looked = set;
	tm_slot_set_link(&h->look->looked[head->klass], set);
	return set;
}

/* The set is unlinked first: a fork's child may lose the slots, but must not have them twice. */
static void forget_looked(struct tm_heap *h, struct tm_slot_set *set)
{
	tm_slot_set_unlink(&h->look->looked[set->head->klass], set);
	set->head->looked = NULL;
	TM_SIGNAL_FENCE();
}

/* Put the marked slots of one span back onto the list of their class. */
static void put_back(struct tm_heap *h, struct tm_slot_set *set)
{
	forget_looked(h, set);
	tm_slot_set_list(h, set);
	tm_slot_set_free(set);
}

static bool mark(struct tm_heap *h, struct tm_granule *head, const struct tm_slot *slot)
{
	struct tm_slot_set *set = head->looked != NULL ? head->looked : make_looked(h, head);

	if (set == NULL)
		return false;
	tm_slot_set_add(set->bits, (uint32_t)tm_span_index(head, slot));
	set->count++;
	return true;
}

/* --- steps ------------------------------------------------------------------------------------ */

static uint32_t listed_when_empty(const struct tm_granule *head)
{
	return head->carved - tm_trim_parked(head) - tm_look_count(head);
}

/* Release the span if it has no slot left that is in use or on a list. Returns its bytes. */
static size_t release_if_empty(struct tm_heap *h, struct tm_granule *head)
{
	size_t bytes = (size_t)head->granules << TM_GRANULE_SHIFT;
	struct tm_slot_set *set = head->looked;

	if (listed_when_empty(head) != 0)
		return 0;
	if (set != NULL) {
		forget_looked(h, set);
		tm_slot_set_free(set);
	}
	tm_trim_forget(h, head);
	tm_span_release(h, head);
	return bytes;
}

/*
 * Whether all entries of carved slots say free. Older slots come first, as they are likelier to
 * live.
 */
static bool entries_are_free(const struct tm_granule *g, uint32_t *work)
{
	uint32_t i = g->nslots;
	bool free = true;

	while (free && i-- > tm_span_first(g))
		free = tm_span_entry_is_free(g, i);
	spend(work, (g->nslots - i) / ENTRIES_A_WORK);
	return free;
}

static size_t choose(struct tm_heap *h, uint32_t *work)
{
	bool all = !tm_span_keeps_entries || tm_inherit_lost;
	size_t bytes = 0;

	while (h->look->span != 0 && *work != 0) {
		struct tm_granule *g = tm_granule_at(h->look->span);

		h->look->span = g->next;
		g->mark = 0;
		spend(work, SPAN_WORK);
		if (!all && g->side != NULL && !entries_are_free(g, work))
			continue;
		g->mark = MARK_CANDIDATE;
		h->look->left[g->klass] += listed_when_empty(g);
		h->look->chosen++;
		if (listed_when_empty(g) == 0)
			bytes += release_if_empty(h, g);
	}
	if (h->look->span != 0)
		return bytes;
	h->look->klass = 0;
	h->look->taken = true;
	if (h->look->chosen <= h->span_count / EMPTY_SHARE) {
		set_state(h, TM_LOOK_OFF);
		return bytes;
	}
	set_state(h, TM_LOOK_SORTS);
	return bytes;
}

static void keep(struct tm_heap *h, struct tm_slot *slot)
{
	slot->next = NULL;
	if (h->look->kept == NULL)
		h->look->kept = slot;
	else
		h->look->last->next = slot;
	h->look->last = slot;
}

/* The slots kept, then those that were not examined, become the list, or wait for it to be empty. */
static void finish_class(struct tm_heap *h)
{
	unsigned klass = h->look->klass;
	struct tm_slot *slots = h->look->rest[klass];

	h->look->rest[klass] = NULL;
	TM_SIGNAL_FENCE();
	if (h->look->kept != NULL) {
		h->look->last->next = slots;
		slots = h->look->kept;
		h->look->kept = NULL;
		TM_SIGNAL_FENCE();
	}
	if (h->list[klass] == NULL)
		h->list[klass] = slots;
	else
		h->look->rest[klass] = slots;
}

/*
 * Make sure that the class has slots to be examined: first what an earlier look left, then the
 * list.
 */
static bool has_rest(struct tm_heap *h)
{
	unsigned klass = h->look->klass;
	struct tm_slot *slots = h->list[klass];

	if (h->look->rest[klass] != NULL || h->look->taken)
		return h->look->rest[klass] != NULL;
	h->look->taken = true;
	h->list[klass] = NULL;
	TM_SIGNAL_FENCE();
	h->look->rest[klass] = slots;
	return slots != NULL;
}

static size_t sort_slot(struct tm_heap *h, uint32_t *work)
{
	unsigned klass = h->look->klass;
	struct tm_slot *slot = h->look->rest[klass];
	struct tm_granule *head = tm_span_head(tm_zone_granule(slot));
	size_t bytes;

	h->look->rest[klass] = slot->next;
	TM_SIGNAL_FENCE();
	h->trim_looks++;
	h->trim_rest++;
	spend(work, 1);
	if (head->mark != MARK_CANDIDATE || !mark(h, head, slot)) {
		keep(h, slot);
		return 0;
	}
	h->trim_rest--;
	h->look->left[klass]--;
	bytes = release_if_empty(h, head);
	if (bytes != 0)
		spend(work, RELEASE_WORK);
	return bytes;
}

static size_t sort(struct tm_heap *h, uint32_t *work)
{
	size_t bytes = 0;

	while (*work != 0) {
		if (h->look->klass != 0 && h->look->left[h->look->klass] != 0 && has_rest(h)) {
			bytes += sort_slot(h, work);
			continue;
		}
		if (h->look->klass != 0)
			finish_class(h);
		if (++h->look->klass == TM_CLASSES) {
			set_state(h, TM_LOOK_OFF);
			break;
		}
		h->look->taken = false;
	}
	return bytes;
}

bool tm_look_ready(struct tm_heap *h)
{
	if (h->look == NULL)
		h->look = tm_meta_alloc(sizeof(*h->look), TM_CACHE_LINE);
	return h->look != NULL;
}

void tm_look_begin(struct tm_heap *h)
{
	if (h->look_state != TM_LOOK_OFF)
		return;
	(void)tm_look_ready(h);
	tm_remote_flush(h);
	if (tm_remote_waits(h))
		tm_remote_drain_some(h);
	tm_arena_settle(h);
	h->first_slot_frees = 0;
	h->trim_rest = 0;
	h->look_ns = 0;
	if (h->look == NULL)
		return;
	h->look->chosen = 0;
	h->look->span = h->span_first;
	h->look->klass = 0;
	__builtin_memset(h->look->left, 0, sizeof(h->look->left));
	set_state(h, TM_LOOK_CHOOSES);
}

size_t tm_look_step(struct tm_heap *h)
{
	uint32_t work = TM_LOOK_WORK;
	size_t bytes = 0;

	if (h->look_state == TM_LOOK_CHOOSES)
		tm_stray_settle(h, &work);
	if (h->look_state == TM_LOOK_CHOOSES)
		bytes += choose(h, &work);
	if (h->look_state == TM_LOOK_SORTS && work != 0)
		bytes += sort(h, &work);
	if (bytes != 0)
		h->look_spans = h->span_count + h->span_count / 8;
	return bytes;
}

/* --- lists that ran empty, other heaps, forks ------------------------------------------------- */

bool tm_look_refill(struct tm_heap *h, unsigned klass)
{
	struct tm_slot *slots = NULL, *last;

	if (h->look == NULL)
		return false;
	if (klass == h->look->klass && h->look->kept != NULL) {
		slots = h->look->kept;
		h->look->kept = NULL;
	} else if (h->look->looked[klass] != NULL) {
		put_back(h, h->look->looked[klass]);
		return h->list[klass] != NULL;
	} else if (h->look->rest[klass] != NULL) {
		slots = last = h->look->rest[klass];
		/* the rest of a class that is being looked at is examined before it is used */
		for (unsigned n = 1; n < SLICE_SLOTS && last->next != NULL; n++)
			last = last->next;
		if (h->look_state != TM_LOOK_SORTS || klass != h->look->klass) {
			h->look->rest[klass] = NULL;
		} else {
			h->look->rest[klass] = last->next;
			TM_SIGNAL_FENCE();
			last->next = NULL;
		}
	} else {
		return tm_stray_refill(h, klass);
	}
	TM_SIGNAL_FENCE();
	h->list[klass] = slots;
	return slots != NULL;
}

void tm_look_end(struct tm_heap *h)
{
	if (h->look_state == TM_LOOK_SORTS && h->look->klass != 0)
		finish_class(h);
	set_state(h, TM_LOOK_OFF);
	if (h->look == NULL)
		return;
	tm_stray_settle_all(h);
	for (unsigned klass = 1; klass < TM_CLASSES; klass++) {
		struct tm_slot **link = &h->list[klass], *slots = h->look->rest[klass];

		h->look->rest[klass] = NULL;
		TM_SIGNAL_FENCE();
		while (slots != NULL && *link != NULL)
			link = &(*link)->next;
		if (slots != NULL)
			*link = slots;
		while (h->look->looked[klass] != NULL)
			put_back(h, h->look->looked[klass]);
	}
}

void tm_look_leave(struct tm_heap *h, unsigned klass)
{
	if (h->look_state != TM_LOOK_SORTS || h->look->klass != klass)
		return;
	finish_class(h);
	h->look->left[klass] = 0;
}

void tm_look_marked_are_free(const struct tm_heap *h, unsigned klass)
{
	if (h->look == NULL)
		return;
	tm_slot_set_are_free(h->look->looked[klass]);
	tm_slot_set_are_free(h->look->parked[klass]);
}

int tm_look_check(const struct tm_heap *h)
{
	if (h->look == NULL)
		return 0;
	if (h->look->kept != NULL && h->look_state != TM_LOOK_SORTS)
		return __LINE__;
	for (unsigned klass = 1; klass < TM_CLASSES; klass++) {
		int rc = tm_slot_set_check(h, klass, h->look->looked[klass]);

		if (rc == 0)
			rc = tm_slot_set_check(h, klass, h->look->parked[klass]);
		if (rc != 0)
			return rc;
	}
	return 0;
}
