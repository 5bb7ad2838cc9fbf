/* SPDX-License-Identifier: MIT */
#include "shim/heap/heap.h"

#include <errno.h>

#include "shim/heap/account.h"
#include "shim/heap/annex.h"
#include "shim/heap/arena.h"
#include "shim/heap/inherit.h"
#include "shim/heap/look.h"
#include "shim/heap/remote.h"
#include "shim/heap/slot_set.h"
#include "shim/heap/span.h"
#include "shim/heap/store.h"
#include "shim/heap/stray.h"
#include "shim/heap/trim.h"
#include "shim/os/lock.h"
#include "shim/os/mem.h"

/* Heaps lie below the zone, far enough to leave room for the zone's tables. */
#define BASE_DISTANCE ((uintptr_t)64 << 30)
#define BASE_TRIES 64u
/* The last numbers are for heaps that threads share: threads without one depend on it. */
#define KEPT_FOR_ALL (1 + (uint32_t)TM_TIER_COUNT)
/* An orphan is trimmed once this much plus an eighth of its size was freed into it. */
#define ORPHAN_LOOK_BYTES ((size_t)256 << 10)

/*
 * Lists that are always empty, in place of a heap and its twin for a thread without one. Never
 * written; not const, since zero pages are never resident but constants would be pages of the file.
 */
static TM_ALIGNED(4096) char none[2 * TM_HEAP_TWIN];

TM_TLS uintptr_t tm_heap_word = (uintptr_t)none;

static struct {
	struct tm_lock lock;
	uintptr_t base;
	uint32_t created;      /* strides used or tried so far */
	struct tm_heap *first; /* all heaps, newest first; read without the lock by reports */
	struct tm_heap *orphans;
	struct tm_heap *shared;
	struct tm_heap *_Atomic annex[TM_TIER_COUNT];
	_Atomic uint32_t orphan_count;
	bool wipe; /* [const after boot] the kernel wipes heaps in a raw fork's child */
} heaps = {.lock = TM_LOCK_INIT(TM_RANK_THREAD)};

/*
 * The lock is held for as long as a trim takes, by a thread of this generation of the process (see
 * lock.h). 0: it is not.
 */
static _Atomic uint32_t held_long;

/* In a raw fork's child a thread that it lacks may hold the lock: orphans are lost then. */
static void lock_heaps(void)
{
	if (tm_lock_acquire(&heaps.lock) != TM_LOCK_STOLEN)
		return;
	heaps.orphans = NULL;
	heaps.shared = NULL;
	atomic_store_explicit(&heaps.orphan_count, 0, memory_order_relaxed);
	heaps.created++;
}

TM_AT_START_CODE bool tm_heap_word_is_none(uintptr_t word)
{
	/* the address of `none` may have the twin's bit itself */
	return word == (uintptr_t)none || word == ((uintptr_t)none | TM_HEAP_BUSY);
}

uintptr_t tm_heap_word_none(void)
{
	return (uintptr_t)none;
}

static int map_rows(uintptr_t at, uint32_t index)
{
	if (tm_account_store.map_rows != NULL)
		return tm_account_store.map_rows(at, index);
	return tm_mem_map_at((void *)at, TM_HEAP_STRIDE, PROT_READ | PROT_WRITE);
}

/* [heaps lock] The heap's number is below `limit`. */
static struct tm_heap *create(uint32_t limit)
{
	while (heaps.created < limit) {
		uint32_t index = heaps.created++;
		uintptr_t at = heaps.base + index * TM_HEAP_STRIDE;
		int rc = tm_mem_map_at((void *)at, TM_HEAP_STRIDE, PROT_READ | PROT_WRITE);

		if (rc == 0) {
			rc = map_rows(at + TM_ROWS_OFFSET, index);
			if (rc != 0)
				tm_mem_unmap((void *)at, TM_HEAP_STRIDE);
		}
		if (rc == -EEXIST)
			continue; /* another mapping of the process lies there: skip it */
		if (rc != 0) {
			heaps.created--;
			return NULL;
		}
		struct tm_heap *h = (struct tm_heap *)at;
		if (heaps.wipe)
			tm_mem_wipeonfork(h, TM_HEAP_STRIDE);
		h->index = index;
		tm_account_heap_begin(h);
		h->self = at;
		h->next = heaps.first;
		__atomic_store_n(&heaps.first, h, __ATOMIC_RELEASE);
		return h;
	}
	return NULL;
}

TM_AT_START_CODE int tm_heap_init(void)
{
	tm_lock_register(&heaps.lock);
	tm_account_init();
	tm_trim_init();
	tm_annex_init();
	/* if the first page is free the whole range probably is */
	for (unsigned i = 0; i < BASE_TRIES; i++) {
		heaps.base = (tm_zone.base - BASE_DISTANCE - i * (uintptr_t)4 * TM_ROWS_OFFSET) &
			     ~(TM_UNIT_BYTES - 1);
		heaps.created = 0;
		int rc = tm_mem_map_at((void *)heaps.base, TM_PAGE_BYTES, PROT_READ | PROT_WRITE);
		if (rc == 0) {
			tm_mem_unmap((void *)heaps.base, TM_PAGE_BYTES);
			return 0;
		}
		if (rc != -EEXIST)
			return rc;
	}
	return -ENOMEM;
}

TM_AT_START_CODE uintptr_t tm_heap_base(void)
{
	return heaps.base;
}

void tm_heap_wipe_on_fork(enum tm_heap_wipe wipe)
{
	heaps.wipe = true;
	if (heaps.created == 0)
		return;
	/* one by one, since strides that were skipped would make a single call fail half-way */
	for (struct tm_heap *h = heaps.first; h != NULL; h = h->next) {
		if (wipe == TM_HEAP_WIPE)
			tm_mem_wipeonfork(h, TM_HEAP_STRIDE);
		else
			tm_mem_keeponfork(h, TM_HEAP_STRIDE);
	}
}

void tm_heap_forget_all(void)
{
	heaps.first = NULL;
	heaps.orphans = NULL;
	heaps.shared = NULL;
	for (int i = 0; i < TM_TIER_COUNT; i++)
		atomic_store_explicit(&heaps.annex[i], NULL, memory_order_relaxed);
	heaps.wipe = false;
	atomic_store_explicit(&heaps.orphan_count, 0, memory_order_relaxed);
}

struct tm_heap *tm_heap_shared(void)
{
	lock_heaps();
	if (heaps.shared == NULL) {
		heaps.shared = create(TM_HEAP_LIMIT);
		if (heaps.shared != NULL) {
			heaps.shared->birth = __atomic_load_n(&tm_account_birth, __ATOMIC_RELAXED);
			atomic_store_explicit(&heaps.shared->state, TM_HEAP_OWNED,
					      memory_order_relaxed);
		}
	}
	tm_lock_release(&heaps.lock);
	return heaps.shared;
}

struct tm_heap *tm_heap_shared_anew(void)
{
	lock_heaps();
	heaps.shared = NULL;
	tm_lock_release(&heaps.lock);
	return tm_heap_shared();
}

struct tm_heap *tm_heap_annex(enum tm_tier tier, enum tm_part part)
{
	struct tm_heap *h = atomic_load_explicit(&heaps.annex[tier], memory_order_acquire);

	if (TM_LIKELY(h != NULL))
		return h;
	lock_heaps();
	h = atomic_load_explicit(&heaps.annex[tier], memory_order_relaxed);
	if (h == NULL && (h = create(TM_HEAP_LIMIT)) != NULL) {
		h->tier = (uint8_t)tier;
		h->part = (uint8_t)part;
		h->birth = __atomic_load_n(&tm_account_birth, __ATOMIC_RELAXED);
		atomic_store_explicit(&h->state, TM_HEAP_ANNEX, memory_order_relaxed);
		atomic_store_explicit(&heaps.annex[tier], h, memory_order_release);
	}
	tm_lock_release(&heaps.lock);
	return h;
}

struct tm_heap *tm_heap_annex_anew(enum tm_tier tier, enum tm_part part)
{
	atomic_store_explicit(&heaps.annex[tier], NULL, memory_order_relaxed);
	return tm_heap_annex(tier, part);
}

/* [heaps lock] */
static void forsake(struct tm_heap *h)
{
	h->tls_word = NULL;
	h->tid = 0;
	atomic_store_explicit(&h->state, TM_HEAP_UNUSED, memory_order_relaxed);
}

void tm_heap_forsake(struct tm_heap *h)
{
	lock_heaps();
	forsake(h);
	tm_lock_release(&heaps.lock);
}

void tm_heap_forsake_all(const uintptr_t *tls_word, const struct tm_heap *but)
{
	lock_heaps();
	for (struct tm_heap *h = heaps.first; h != NULL; h = h->next)
		if (h != but && h->tls_word == tls_word)
			forsake(h);
	tm_lock_release(&heaps.lock);
}

struct tm_heap *tm_heap_adopt(uintptr_t *tls_word, int32_t tid, uintptr_t stack_top)
{
	struct tm_heap *h;

	lock_heaps();
	h = heaps.orphans;
	if (h != NULL) {
		heaps.orphans = h->next_orphan;
		atomic_fetch_sub_explicit(&heaps.orphan_count, 1, memory_order_relaxed);
	} else {
		h = create(TM_HEAP_LIMIT - KEPT_FOR_ALL);
	}
	if (h != NULL) {
		h->birth = __atomic_load_n(&tm_account_birth, __ATOMIC_RELAXED);
		if (tm_inherit_is_open(h))
			tm_inherit_settle_all(h);
		if (h->rows > 1)
			tm_account_heap_move(h, stack_top);
		h->stack_top = stack_top;
		h->trimmed_mark = 0;
		atomic_store_explicit(&h->orphan_freed, 0, memory_order_relaxed);
		h->tls_word = tls_word;
		h->tid = tid;
		atomic_store_explicit(&h->state, TM_HEAP_OWNED, memory_order_release);
	}
	tm_lock_release(&heaps.lock);
	return h;
}

static void make_orphan(struct tm_heap *h)
{
	h->tls_word = NULL;
	h->tid = 0;
	h->next_orphan = heaps.orphans;
	heaps.orphans = h;
	atomic_fetch_add_explicit(&heaps.orphan_count, 1, memory_order_relaxed);
	atomic_store_explicit(&h->state, TM_HEAP_ORPHAN, memory_order_release);
}

void tm_heap_orphan(struct tm_heap *h)
{
	lock_heaps();
	make_orphan(h);
	tm_lock_release(&heaps.lock);
}

/*
 * Take from the first orphan in which `take` finds something. What is examined until then, and what
 * is linked of that which other threads freed, is bounded for all orphans together.
 */
static bool take_from_orphans(struct tm_heap *h,
			      bool (*take)(struct tm_heap *from, struct tm_heap *to, unsigned klass,
					   uint32_t *work),
			      unsigned klass)
{
	uint32_t work = TM_STRAY_WORK;
	size_t linked = 0;
	bool taken = false;

	/* new memory is had sooner than a trim ends */
	if (atomic_load_explicit(&heaps.orphan_count, memory_order_relaxed) == 0 ||
	    atomic_load_explicit(&held_long, memory_order_relaxed) == tm_fork_generation() + 1)
		return false;
	lock_heaps();
	for (struct tm_heap *o = heaps.orphans; o != NULL && !taken && work != 0;
	     o = o->next_orphan) {
		if (tm_remote_waits(o) && linked < TM_DRAIN_SLOTS)
			linked += tm_remote_drain_some(o);
		taken = take(o, h, klass, &work);
	}
	tm_lock_release(&heaps.lock);
	return taken;
}

static bool take_spans(struct tm_heap *from, struct tm_heap *to, unsigned klass, uint32_t *work)
{
	if (from->list[klass] == NULL && !tm_look_has(from, klass))
		return false;
	if (!tm_look_ready(from) || !tm_look_ready(to))
		return false;
	if (tm_inherit_is_open(from))
		tm_inherit_settle_all(from);
	return tm_stray_take(from, to, klass, work);
}

static bool take_arenas(struct tm_heap *from, struct tm_heap *to, unsigned klass, uint32_t *work)
{
	(void)klass;
	(void)work;
	if (from->arena_first == NULL)
		return false;
	tm_arena_transfer(from, to);
	return true;
}

bool tm_heap_take_from_orphans(struct tm_heap *h, unsigned klass)
{
	return take_from_orphans(h, take_spans, klass);
}

bool tm_heap_take_arenas_from_orphans(struct tm_heap *h)
{
	return take_from_orphans(h, take_arenas, 0);
}

void tm_heap_freed_for(struct tm_heap *h, size_t bytes)
{
	if (tm_annex_is(h))
		tm_annex_freed(h, bytes);
	if (atomic_load_explicit(&h->state, memory_order_relaxed) != TM_HEAP_ORPHAN)
		return;
	bytes += atomic_fetch_add_explicit(&h->orphan_freed, bytes, memory_order_relaxed);
	if ((!tm_look_is_on(h) &&
	     bytes < ORPHAN_LOOK_BYTES + ((size_t)h->span_count << TM_GRANULE_SHIFT) / 8) ||
	    !tm_lock_try(&heaps.lock))
		return;
	if (atomic_load_explicit(&h->state, memory_order_relaxed) == TM_HEAP_ORPHAN) {
		if (!tm_look_is_on(h)) {
			atomic_store_explicit(&h->orphan_freed, 0, memory_order_relaxed);
			tm_look_begin(h);
		}
		(void)tm_look_step(h);
	}
	tm_lock_release(&heaps.lock);
}

uint32_t tm_heap_count(void)
{
	return __atomic_load_n(&heaps.created, __ATOMIC_RELAXED);
}

struct tm_heap *tm_heap_orphan_first(void)
{
	return heaps.orphans;
}

struct tm_heap *tm_heap_first(void)
{
	return __atomic_load_n(&heaps.first, __ATOMIC_ACQUIRE);
}

TM_AT_START_CODE void tm_heap_each(void (*visit)(struct tm_heap *h, void *arg), void *arg)
{
	struct tm_heap *h = __atomic_load_n(&heaps.first, __ATOMIC_ACQUIRE);

	for (; h != NULL; h = h->next)
		visit(h, arg);
}

void tm_heap_lock(void)
{
	lock_heaps();
}

void tm_heap_unlock(void)
{
	tm_lock_release(&heaps.lock);
}

void tm_heap_lock_long(void)
{
	atomic_store_explicit(&held_long, tm_fork_generation() + 1, memory_order_relaxed);
	lock_heaps();
}

void tm_heap_unlock_long(void)
{
	tm_lock_release(&heaps.lock);
	atomic_store_explicit(&held_long, 0, memory_order_relaxed);
}

TM_AT_START_CODE void tm_heap_fork_child(struct tm_heap *mine)
{
	for (struct tm_heap *h = heaps.first; h != NULL; h = h->next) {
		/* these are never adopted, which would settle them */
		if ((h == heaps.shared ||
		     atomic_load_explicit(&h->state, memory_order_relaxed) == TM_HEAP_ANNEX) &&
		    tm_inherit_is_open(h))
			tm_inherit_settle_all(h);
		if (h == mine || h == heaps.shared)
			continue;
		atomic_store_explicit(&h->stolen, 0, memory_order_relaxed);
		if (atomic_load_explicit(&h->state, memory_order_relaxed) == TM_HEAP_OWNED)
			make_orphan(h);
	}
}

static int check_span(const struct tm_heap *h, const struct tm_granule *g)
{
	uintptr_t owner = (uintptr_t)h;

	if ((g->owner & ~TM_OWNER_BITS) != owner || g->carved > g->nslots)
		return __LINE__;
	for (unsigned i = 1; i < g->granules; i++)
		if ((g[i].owner & ~TM_OWNER_BITS) != owner || g[i].head != g->head)
			return __LINE__;
	return 0;
}

static int check_list(const struct tm_heap *h, unsigned klass, const struct tm_slot *s)
{
	for (; s != NULL; s = s->next) {
		struct tm_granule *head = tm_span_head(tm_zone_granule(s));
		int32_t index;

		if (head->klass != klass || (head->owner & ~TM_OWNER_BITS) != (uintptr_t)h)
			return __LINE__;
		index = tm_span_index(head, s);
		if (index < 0)
			return __LINE__;
		if (head->side != NULL && !tm_inherit_is_open(h) &&
		    !tm_span_entry_is_free(head, (uint32_t)index))
			return __LINE__;
		if (head->looked != NULL &&
		    tm_slot_set_has(((const struct tm_slot_set *)head->looked)->bits,
				    (uint32_t)index))
			return __LINE__;
	}
	return 0;
}

static int check_strays(unsigned klass, const struct tm_slot *chain)
{
	for (; chain != NULL; chain = chain->entry)
		for (const struct tm_slot *s = chain; s != NULL; s = s->next) {
			struct tm_granule *head = tm_span_head(tm_zone_granule(s));

			if (head->klass != klass || tm_span_index(head, s) < 0)
				return __LINE__;
		}
	return 0;
}

int tm_heap_check(const struct tm_heap *h)
{
	uint32_t spans = 0;

	for (struct tm_granule *g = tm_granule_at(h->span_first); g != NULL;
	     g = tm_granule_at(g->next)) {
		int rc = check_span(h, g);

		if (rc != 0)
			return rc;
		spans++;
	}
	if (spans != h->span_count)
		return __LINE__;
	for (unsigned klass = 0; klass < TM_CLASSES; klass++) {
		int rc = check_list(h, klass, h->list[klass]);

		if (rc == 0 && h->look != NULL)
			rc = check_list(h, klass, h->look->rest[klass]);
		if (rc == 0 && h->look != NULL && h->look->klass == klass)
			rc = check_list(h, klass, h->look->kept);
		if (rc == 0 && h->look != NULL)
			rc = check_strays(klass, h->look->stray[klass]);
		if (rc != 0)
			return rc;
	}
	int rc = tm_look_check(h);
	if (rc != 0)
		return rc;
	return tm_arena_check(h);
}
