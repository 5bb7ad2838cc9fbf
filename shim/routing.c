/* SPDX-License-Identifier: MIT */
#include "shim/routing.h"

#include <errno.h>
#include <string.h>

#include "shim/base/bits.h"
#include "shim/boot.h"
#include "shim/heap/arena.h"
#include "shim/heap/extent.h"
#include "shim/heap/huge.h"
#include "shim/heap/meta.h"
#include "shim/heap/numa.h"
#include "shim/heap/pool.h"
#include "shim/heap/span.h"
#include "shim/heap/tier.h"
#include "shim/ledger/decisions.h"
#include "shim/os/clock.h"
#include "shim/os/lock.h"
#include "shim/os/mem.h"
#include "shim/os/msg.h"
#include "shim/os/proc.h"
#include "shim/os/sys.h"
#include "shim/places.h"
#include "shim/ruling.h"
#include "shim/source_drop.h"

#define HAND_OVER_UNITS ((size_t)1 << 20) /* no limit: the whole run */

/* tm_routing_look: the target interval in ms; bounds for the number of requests between two. */
#define LOOK_MS 25u
#define LOOK_FIRST 255
#define LOOK_MIN 15
#define LOOK_MAX 1023
/* The thread's name is read at each of its first requests, later at one in this many. */
#define NAMED_AT_ONCE 64u
#define NAMED_MS 25u
/* A census takes at most 1/50 of the time, and is made in steps (TM_ROUTING_CENSUS_WORK). */
#define CENSUS_SHARE 50u
/* A row is temporary if at most 1/16 of its births is live: the others have died soon. */
#define STAY_SHARE 16u

/* A row's figures at the last census. */
struct note {
	uint32_t objects; /* allocated */
	uint32_t bytes16; /* allocated, in units of 16 bytes */
	uint16_t alive;   /* live medium objects now, saturates at 65,535 */
	uint16_t before;  /* the same at the census before */
};

/* Routing's state per heap, stored in the space behind the heap. */
struct mine {
	struct tm_route_thread thread;
	int32_t tid;    /* the thread that `thread` was initialised for */
	uint32_t named; /* times its name was read; NAMED_AT_ONCE: now only occasionally */
	uint64_t named_ms;
	int32_t period; /* initial value of h->medium_left */
	uint64_t looked_ms;
	uint32_t census_epoch;
	uint64_t next_census_ns;
	uint64_t census_ns; /* that the last one has taken so far */
	bool counts;        /* a census goes on */
	struct note *notes; /* TM_HEAP_ROWS, mapped for the first census */
	uint32_t rows;      /* tm_routing.rows when the rows were last reset */
};
_Static_assert(sizeof(struct mine) <= TM_HEAP_ROOM_BYTES, "it fits behind a heap");

struct tm_routing tm_routing = {.lock = TM_LOCK_INIT(TM_RANK_RULES)};

/* Whichever thread it was initialised for: all but the name and its rules belongs to the heap. */
static struct mine *room_of(struct tm_heap *h)
{
	return (struct mine *)((uintptr_t)h + TM_HEAP_ROOM_OFFSET);
}

static struct mine *mine_of(struct tm_heap *h)
{
	struct mine *mine = room_of(h);

	if (TM_UNLIKELY(mine->tid != h->tid)) {
		tm_route_thread_begin(&mine->thread, "");
		mine->tid = h->tid;
		mine->named = 0;
	}
	return mine;
}

/* For the calling thread: rereads its name, as some threads are named after they have allocated. */
static TM_NOINLINE void look_at_name(struct mine *mine)
{
	uint64_t now = tm_clock_ms();
	char name[sizeof(mine->thread.name)] = "";

	if (mine->named >= NAMED_AT_ONCE && now - mine->named_ms < NAMED_MS)
		return;
	mine->named += mine->named < NAMED_AT_ONCE;
	mine->named_ms = now;
	tm_proc_thread_name(name);
	if (!tm_str_equal(tm_str_of(name), tm_str_of(mine->thread.name)))
		tm_route_thread_begin(&mine->thread, name);
}

static struct mine *mine_of_asker(struct tm_heap *h)
{
	struct mine *mine = mine_of(h);

	if (TM_UNLIKELY(tm_routing.rules.by_thread))
		look_at_name(mine);
	return mine;
}

static size_t page_round(size_t bytes)
{
	return tm_bits_align_up(bytes, TM_PAGE_BYTES);
}

static uint64_t clock_ms(void *context)
{
	(void)context;
	return tm_clock_ms();
}

/* If two threads map at the same time, the second unmaps its memory. */
static TM_NOINLINE bool make_ready(void)
{
	struct tm_route_memory memory = {0};

	if (atomic_load_explicit(&tm_routing.failed, memory_order_relaxed))
		return false;
	tm_lock_acquire(&tm_routing.lock);
	if (!atomic_load_explicit(&tm_routing.ready, memory_order_relaxed)) {
		/* not with a tight memory limit: the program needs the memory more */
		if (TM_SITES_BYTES <= tm_zone_room() / 64)
			memory.sites = tm_mem_map(page_round(TM_SITES_BYTES));
		memory.site_rules = tm_routing.route.site_rules;
		if (memory.sites != NULL) {
			tm_route_init(&tm_routing.route, &memory);
			tm_routing.route.clock = clock_ms;
			tm_decisions_follow(&tm_routing.route);
			/* release: a thread that sees it sees the table */
			atomic_store_explicit(&tm_routing.ready, true, memory_order_release);
		} else {
			atomic_store_explicit(&tm_routing.failed, true, memory_order_relaxed);
		}
	}
	tm_lock_release(&tm_routing.lock);
	return atomic_load_explicit(&tm_routing.ready, memory_order_relaxed);
}

static bool is_ready(void)
{
	return TM_LIKELY(atomic_load_explicit(&tm_routing.ready, memory_order_acquire)) ||
	       make_ready();
}

/* Makes the tier of small requests follow the phase. */
static void follow_phase(void)
{
	uint8_t tier = tm_routing_phase() == TM_PHASE_SERVE ? TM_TIER_SESSION : TM_TIER_PERSISTENT;

	if (TM_LIKELY(atomic_load_explicit(&tm_tier_of_spans, memory_order_relaxed) == tier))
		return;
	atomic_store_explicit(&tm_tier_of_spans, tier, memory_order_relaxed);
	if (tier != TM_TIER_SESSION)
		return;
	/* free memory of the load phase is used for serving, with its resident pages */
	while (tm_extent_hand_over(TM_PART_PERSISTENT, TM_PART_LARGE, HAND_OVER_UNITS))
		;
	tm_source_drop_begin();
}

/* Reports to the policies the medium requests since the last call. */
static void tell_requests(struct tm_heap *h)
{
	struct mine *mine = mine_of(h);
	int32_t requests = mine->period - h->medium_left;

	if (mine->period == 0 || requests <= 0)
		return;
	h->medium_left = mine->period;
	tm_route_heard(&tm_routing.route, &mine->thread, (uint32_t)requests);
}

static uint32_t height_of(const struct tm_heap *h, const struct tm_routing_request *request)
{
	uint64_t height = (h->stack_top - request->site.frame) >> 4;

	return (uint32_t)tm_bits_min(height, UINT16_MAX);
}

static struct tm_route_request ask(const struct tm_heap *h,
				   const struct tm_routing_request *request)
{
	return (struct tm_route_request){.size = request->size,
					 .align = request->align,
					 .return_address = request->site.return_address,
					 .height = height_of(h, request),
					 .asked = request->asked};
}

static TM_NOINLINE struct tm_route_decision decide_slow(struct tm_heap *h,
							const struct tm_routing_request *request)
{
	struct tm_route_request r = ask(h, request);
	struct tm_route_decision d = {.tier = TM_TIER_SESSION, .authority = TM_AUTHORITY_DEFAULT};

	/* a request that fails must leave no trace */
	if (request->size >= tm_zone.limit || !is_ready())
		return d;
	if (tm_routing_phase() == TM_PHASE_LOAD)
		tell_requests(h);
	d = tm_route_decide(&tm_routing.route, &mine_of_asker(h)->thread, &r);
	follow_phase();
	tm_source_drop_pass();
	return d;
}

/*
 * A cached final decision implies that the program serves, that no rule concerns the site, and that
 * the table exists: neither the thread's name nor the heap's owner has to be checked.
 */
struct tm_route_decision tm_routing_decide(struct tm_heap *h,
					   const struct tm_routing_request *request)
{
	struct mine *mine = room_of(h);
	uint64_t key = tm_sites_key_fine(request->site.return_address, height_of(h, request),
					 request->size >= TM_PHASE_LARGE_BYTES);
	struct tm_route_decision d;

	if (TM_UNLIKELY(tm_source_drop_wanted ||
			atomic_load_explicit(&tm_tier_of_spans, memory_order_relaxed) !=
				TM_TIER_SESSION ||
			!tm_route_recall(&tm_routing.route, &mine->thread, key, request->size, &d)))
		return decide_slow(h, request);
	return d;
}

TM_AT_START_CODE bool tm_routing_guards(enum tm_rule_guard guard)
{
	return (atomic_load_explicit(&tm_routing.guards, memory_order_relaxed) >> guard & 1) != 0;
}

enum tm_rule_guard tm_routing_guard(struct tm_heap *h, const struct tm_routing_request *request)
{
	struct tm_route_request r = ask(h, request);
	unsigned rule;

	if (atomic_load_explicit(&tm_routing.guards, memory_order_relaxed) == 0 || !is_ready())
		return TM_RULE_GUARD_UNSET;
	rule = tm_route_rule(&tm_routing.route, &mine_of_asker(h)->thread, &r);
	return rule == 0 ? TM_RULE_GUARD_UNSET
			 : (enum tm_rule_guard)tm_rules_actions(&tm_routing.rules, rule)->guard;
}

enum tm_tier tm_routing_ruled(struct tm_heap *h, const struct tm_routing_request *request,
			      enum tm_routing_reach *ret_reach)
{
	struct tm_route_request r = ask(h, request);
	struct tm_route_decision d = {.tier = TM_TIER_ALL};
	bool reached = true;

	if (is_ready())
		d = tm_route_ruled(&tm_routing.route, &mine_of_asker(h)->thread, &r, &reached);
	*ret_reach = reached ? TM_ROUTING_SOME_RULE : TM_ROUTING_NO_RULE;
	return d.authority == TM_AUTHORITY_RULE ? (enum tm_tier)d.tier : TM_TIER_ALL;
}

void tm_routing_ask_anew(void)
{
	if (tm_tier_is_ruled())
		atomic_fetch_add_explicit(&tm_routing.rows, 1, memory_order_relaxed);
}

void tm_routing_ask_anew_here(struct tm_heap *h)
{
	struct mine *mine = mine_of(h);
	uint32_t rows = atomic_load_explicit(&tm_routing.rows, memory_order_relaxed);

	if (mine->rows == rows)
		return;
	mine->rows = rows;
	for (uint32_t n = 1; n < h->rows; n++)
		h->lists_of_row[n] = TM_RULED_LISTS;
}

/* --- blocks up to 64 KiB ---------------------------------------------------------------------- */

static void count_alive(struct note *notes, const struct tm_granule *head)
{
	for (uint32_t i = tm_span_first(head); i < head->nslots; i++) {
		unsigned id = *(const uint16_t *)tm_span_entry(head, i);
		struct note *note = &notes[id / 16];

		if (id != TM_ENTRY_FREE && note->alive != UINT16_MAX)
			note->alive++;
	}
}

static bool is_temporary(struct tm_heap *h, uint32_t n, struct note *note)
{
	const struct tm_row *row = tm_account_row((uintptr_t)h, n << 4);
	uint32_t born = (uint32_t)row->objects - note->objects;
	uint32_t bytes16 = (uint32_t)(row->bytes / 16) - note->bytes16;
	uint32_t all = note->before + born;
	uint32_t died = all > note->alive ? all - note->alive : 0;
	struct tm_route_batch batch = {.return_address = row->site,
				       .height = row->height == 0 ? 0 : row->height - 1u,
				       .born = born};
	struct tm_route_decision d;

	note->objects += born;
	note->bytes16 += bytes16;
	/* in a forked child the rows start from zero */
	if (born > INT32_MAX)
		return false;
	if (born == 0 && died == 0)
		return h->lists_of_row[n] == TM_ARENA_LISTS;
	batch.size = born == 0 ? TM_SMALL_MAX + 1 : (size_t)bytes16 * 16 / born;
	/* mostly small objects, whose lifetimes are unknown */
	if (batch.size <= TM_SMALL_MAX)
		return false;
	batch.died_late = (uint64_t)note->alive * STAY_SHARE <= born
				  ? 0
				  : (uint32_t)tm_bits_min(died, note->before);
	batch.died_soon = died - batch.died_late;
	d = tm_route_batch(&tm_routing.route, &mine_of(h)->thread, &batch);
	/* requests that have a pool are served by it */
	if (batch.size <= TM_SLOT_MAX && tm_pool_of_class(tm_class_of(batch.size)) != NULL)
		return false;
	return d.tier == TM_TIER_TEMPORARY && tm_routing_phase() == TM_PHASE_SERVE;
}

static void begin_census(struct tm_heap *h, struct note *notes)
{
	for (uint32_t n = 0; n < h->rows; n++) {
		notes[n].before = notes[n].alive;
		notes[n].alive = 0;
	}
	h->census_span = h->span_first;
	h->census_block = h->arena_first;
}

/*
 * Count on. False: some spans remain. What is born in the meantime counts as dead if its span was
 * counted before.
 */
static bool count_some(struct tm_heap *h, struct note *notes)
{
	uint32_t work = TM_ROUTING_CENSUS_WORK, used;

	while (h->census_span != 0 && work != 0) {
		const struct tm_granule *g = tm_granule_at(h->census_span);

		h->census_span = g->next;
		used = TM_ROUTING_SPAN_WORK;
		if (g->kind == TM_SPAN_MEDIUM && g->side != NULL) {
			count_alive(notes, g);
			used += g->carved;
		}
		work -= (uint32_t)tm_bits_min(used, work);
	}
	while (h->census_block != NULL && work != 0) {
		const struct tm_arena_block *b = h->census_block;

		h->census_block = b->next;
		count_alive(notes, b->granule);
		work -= (uint32_t)tm_bits_min(TM_ARENA_LINES, work);
	}
	return h->census_span == 0 && h->census_block == NULL;
}

static void end_census(struct tm_heap *h, struct note *notes)
{
	for (uint32_t n = 1; n < h->rows; n++) {
		bool temporary = is_temporary(h, n, &notes[n]);

		if (h->lists_of_row[n] != TM_RULED_LISTS)
			h->lists_of_row[n] = temporary && !tm_tier_observe ? TM_ARENA_LISTS : 0;
	}
}

static void look_at_epoch(struct tm_heap *h, struct mine *mine)
{
	uint32_t epoch = tm_lifetime_now(&tm_routing.route.epoch);
	uint64_t before, after;

	if (!mine->counts && epoch == mine->census_epoch)
		return;
	before = tm_clock_ns();
	if (!mine->counts) {
		if (before < mine->next_census_ns)
			return;
		if (mine->notes == NULL)
			mine->notes = tm_mem_map(page_round(TM_HEAP_ROWS * sizeof(struct note)));
		if (mine->notes == NULL)
			return;
		mine->census_epoch = epoch;
		mine->census_ns = 0;
		mine->counts = true;
		tm_arena_epoch(h, epoch);
		begin_census(h, mine->notes);
	}
	if (count_some(h, mine->notes)) {
		mine->counts = false;
		end_census(h, mine->notes);
	}
	after = tm_clock_ns();
	mine->census_ns += after - before;
	mine->next_census_ns = after + mine->census_ns * CENSUS_SHARE;
}

static int32_t next_period(const struct mine *mine, uint64_t now_ms)
{
	unsigned period = (unsigned)mine->period;

	if (now_ms - mine->looked_ms > LOOK_MS)
		return (int32_t)tm_bits_max(period / 2, LOOK_MIN);
	return (int32_t)tm_bits_min(period * 2 + 1, LOOK_MAX);
}

void tm_routing_look(struct tm_heap *h)
{
	struct mine *mine = mine_of(h);
	uint64_t now = tm_clock_ms();

	tm_routing_ask_anew_here(h);
	/* Most programs, and most threads, end before the second look. */
	if (mine->period == 0) {
		mine->period = LOOK_FIRST;
	} else if (is_ready()) {
		/* else this interval was a shorter one, which says nothing of the period */
		if (!mine->counts)
			mine->period = next_period(mine, now);
		tell_requests(h);
		follow_phase();
		look_at_epoch(h, mine);
	}
	mine->looked_ms = now;
	h->medium_left = mine->counts ? LOOK_MIN : mine->period;
}

/* Applies a rule's huge= to the whole units inside a block. */
static void apply_huge(void *p, struct tm_granule *g, enum tm_rule_huge huge)
{
	size_t first = tm_bits_align_up(g->large.page, TM_UNIT_PAGES);
	size_t end = (g->large.page + g->large.pages) / TM_UNIT_PAGES * TM_UNIT_PAGES;
	size_t bytes = (end - first) << TM_PAGE_SHIFT;

	(void)p;
	if (end <= first || g->large.part == TM_PART_GROW)
		return;
	if (huge == TM_RULE_HUGE_ALWAYS) {
		tm_huge_advise((uint32_t)first, (end - first) / TM_UNIT_PAGES);
	} else if (huge == TM_RULE_HUGE_NEVER) {
		(void)tm_zone.os->nohugepage(tm_zone_page_addr((uint32_t)first), bytes);
		/* undone when the block is freed: the next block gets its part's setting */
		tm_zone_taint(p, g->large.pages << TM_PAGE_SHIFT);
	}
}

/* Applies a rule's node= to pages not shared with a neighbour; free maps them anew. */
static void apply_node(void *p, struct tm_granule *g, const struct tm_rule_actions *actions)
{
	static const enum tm_numa_policy policies[] = {
		[TM_RULE_NODE_NUMBER] = TM_NUMA_ON_SET,
		[TM_RULE_NODE_INTERLEAVE] = TM_NUMA_ON_ALL,
		[TM_RULE_NODE_LOCAL] = TM_NUMA_NEAR,
	};
	size_t bytes = (size_t)g->large.pages << TM_PAGE_SHIFT;

	if (g->large.part != TM_PART_GROW &&
	    tm_numa_place(p, bytes, policies[actions->node], actions->node_number))
		tm_zone_taint(p, bytes);
}

void tm_routing_born(void *p, struct tm_route_decision decision)
{
	struct tm_granule *g = tm_zone_granule(p);

	g->large.site = decision.site;
	g->large.epoch = decision.epoch;
	if (TM_UNLIKELY(decision.rule != 0)) {
		const struct tm_rule_actions *actions =
			tm_rules_actions(&tm_routing.rules, decision.rule);

		apply_huge(p, g, (enum tm_rule_huge)actions->huge);
		if (actions->node != TM_RULE_NODE_UNSET)
			apply_node(p, g, actions);
	}
}

const struct tm_rule_actions *tm_routing_actions(unsigned rule)
{
	return tm_rules_actions(&tm_routing.rules, rule);
}

unsigned tm_routing_line(unsigned rule)
{
	return tm_routing.rules.rule[rule - 1].line;
}

struct tm_route_death tm_routing_dies(const struct tm_granule *g)
{
	if (tm_routing.route.sites.record != NULL)
		tm_route_will_free(&tm_routing.route, g->large.site);
	return (struct tm_route_death){g->large.site, g->large.epoch, g->large.requested};
}

void tm_routing_died(struct tm_heap *h, struct tm_route_death death)
{
	if (!atomic_load_explicit(&tm_routing.ready, memory_order_acquire))
		return;
	tm_route_freed(&tm_routing.route, &room_of(h)->thread, death);
}

void tm_routing_step(void)
{
	if (is_ready()) {
		tm_route_step(&tm_routing.route);
		follow_phase();
	}
}

void tm_routing_serve(void)
{
	if (is_ready()) {
		tm_phase_step(&tm_routing.route.phase);
		follow_phase();
	}
}

void tm_routing_forget(uintptr_t begin, uintptr_t end)
{
	if (atomic_load_explicit(&tm_routing.ready, memory_order_acquire))
		tm_route_forget(&tm_routing.route, begin, end);
	tm_places_forget(begin, end);
	tm_routing_ask_anew();
}

enum tm_phase_kind tm_routing_phase(void)
{
	return tm_phase_now(&tm_routing.route.phase);
}

/* --- start ------------------------------------------------------------------------------------ */

TM_AT_START_CODE void tm_routing_init(void)
{
	const struct tm_options *options = &tm_root.options;

	tm_lock_register(&tm_routing.lock);
	tm_places_init();
	tm_tier_configure(options->max_bytes);
	tm_tier_temporary_apart = options->max_bytes[TM_TIER_TEMPORARY] != TM_OPTION_NONE ||
				  options->keep_bytes[TM_TIER_TEMPORARY] != TM_OPTION_AUTO ||
				  options->decay_ms[TM_TIER_TEMPORARY] != TM_OPTION_AUTO;
	tm_tier_observe = options->mode == TM_MODE_OBSERVE;
	tm_ruling_init();
}
