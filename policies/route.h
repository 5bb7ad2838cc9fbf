/* SPDX-License-Identifier: MIT */
/*
 * route: decides which tier a request goes to, and records by which authority. In descending order
 * of authority: rule, profile, learned, phase and size, default. Called for requests above 1 KiB
 * only; smaller ones follow the phase alone (tm_phase_now).
 *
 * Pure: no system call, no clock of its own, no allocation, no lock. Any thread may call; a struct
 * tm_route_thread belongs to one thread at a time (the owner of the heap). Not reentrant for one
 * tm_route_thread: a signal handler that allocates meanwhile is served elsewhere, as it is for
 * heaps.
 *
 *     struct tm_route_decision d = tm_route_decide(route, mine, &request);
 *
 * Then place the block, store d.site and d.epoch with it, and when it dies:
 *
 *     tm_route_freed(route, mine, (struct tm_route_death){d.site, d.epoch, bytes});
 *
 * A realloc is a death and a birth, also where the block stays in place.
 */
#ifndef TM_POLICIES_ROUTE_H
#define TM_POLICIES_ROUTE_H

#include "policies/lifetime.h"
#include "policies/phase.h"
#include "policies/rules.h"
#include "policies/rules_match.h"
#include "policies/sites.h"
#include "shim/base/attrs.h"

enum tm_authority {
	TM_AUTHORITY_NONE,
#define X(authority, name, meaning) TM_AUTHORITY_##authority,
#include "shim/base/authorities.def"
#undef X
	TM_AUTHORITY_COUNT
};

/* Requests up to this many bytes are never passed to this module. */
#define TM_ROUTE_MIN_BYTES 1024u

struct tm_route_request {
	size_t size;
	size_t align;
	uintptr_t return_address;
	uint32_t height; /* stack depth at the call, in 16 bytes: (stack top - frame) >> 4 */
	size_t asked;    /* bytes that the program asked for, which rules compare; 0: `size` */
};

struct tm_route_decision {
	uint16_t site;     /* index to pass when the block dies; 0: nothing is recorded about it */
	uint16_t rule;     /* rule that applied, for tm_rules_actions(); 0: none */
	uint8_t tier;      /* enum tm_tier, never TM_TIER_ALL */
	uint8_t authority; /* enum tm_authority */
	uint8_t epoch;     /* low 7 bits of the birth epoch: site and epoch fit into 23 bits */
	uint8_t unused;
};
_Static_assert(sizeof(struct tm_route_decision) == 8, "returned in a register");

struct tm_route_death {
	uint16_t site;
	uint8_t epoch;
	uint64_t bytes; /* bytes that were requested */
};

/*
 * Fills in what is known about a return address. Called once for each new call site, on a slow
 * path.
 */
typedef void tm_route_where(void *context, uintptr_t return_address, struct tm_rules_place *place);

/*
 * Returns milliseconds of any clock that never goes back. Called now and then by the threads that
 * decide.
 */
typedef uint64_t tm_route_clock(void *context);

/* One per process, zeroed before tm_route_init. */
struct tm_route {
	struct tm_sites sites;
	/*
	 * A way's cached decision is valid if its `settled` equals this but for the two low bits,
	 * which hold the tier. A value above 16 bits makes all cached decisions invalid. Rarely
	 * written, as is `epoch`; the counters that all threads write have a cache line of their
	 * own.
	 */
	_Atomic uint32_t stamp;
	struct tm_lifetime_epoch epoch;
	struct tm_rules *rules;         /* [const] NULL: none */
	struct tm_rules_ranges *ranges; /* [const] NULL: no symbol rules */
	/* [const] NULL: no rules; else TM_SITES_COUNT sets, lent zeroed */
	struct tm_rules_set *site_rules;
	tm_route_where *where; /* [const] NULL: no module or symbol is known */
	tm_route_clock *clock; /* [const] NULL: only tm_route_step starts epochs */
	void *context;         /* [const] passed to where and clock */
	TM_ALIGNED(TM_CACHE_LINE) struct tm_phase phase;
};

/* [owner] One per heap, zeroed; a little over 16 KiB. */
struct tm_route_thread {
	struct tm_sites_cache cache;
	struct tm_phase_local local;
	uint32_t left;    /* requests until counts are handed over and the clock is read */
	uint32_t counted; /* value of `left` when requests were last counted */
	uint32_t pause;   /* value that `left` is reset to, less 1 */
	uint32_t frees;   /* frees that confirmed a steady belief, of which 1 in 16 is counted */
	uint64_t asked_ms;
	/* rules' generation that thread_rules is for; 0: not computed */
	uint32_t thread_rules_generation;
	struct tm_rules_set thread_rules;
	char name[16]; /* thread name that thread= rules match; "" if not known */
};

struct tm_route_memory {
	void *sites;      /* TM_SITES_BYTES of zeros */
	void *site_rules; /* TM_ROUTE_SITE_RULES_BYTES of zeros; NULL where there are no rules */
};
#define TM_ROUTE_SITE_RULES_BYTES (sizeof(struct tm_rules_set) * TM_SITES_COUNT)

/*
 * Sets up a zeroed route with the lent memory, which must stay. The caller sets the [const] fields
 * before any thread decides.
 */
void tm_route_init(struct tm_route *route, const struct tm_route_memory *memory);

/*
 * A thread takes over `mine` (a new or adopted heap), or has changed its name. `name` may be NULL.
 */
void tm_route_thread_begin(struct tm_route_thread *mine, const char *name);

/* Slow paths of tm_route_decide and tm_route_freed. */
struct tm_route_decision tm_route_decide_slow(struct tm_route *route, struct tm_route_thread *mine,
					      const struct tm_route_request *request);
void tm_route_freed_slow(struct tm_route *route, struct tm_route_thread *mine,
			 struct tm_route_death death);

/* Stamp while the program loads: no cached decision is valid. */
#define TM_ROUTE_STAMP_NONE 0x10000u

/*
 * The fast path of tm_route_decide, with the same arguments; the parts of the request that it needs
 * are passed in registers. It applies while serving, if a way of the cache holds a valid decision
 * and neither the clock nor the counts are due. It reads the way and not the site's record. False:
 * nothing was done, take the slow path.
 */
TM_INLINE bool tm_route_recall(struct tm_route *route, struct tm_route_thread *mine, uint64_t key,
			       size_t size, struct tm_route_decision *ret_decision)
{
	struct tm_sites_way *way = &mine->cache.way[tm_sites_set(key)][0];
	uint32_t tier;

	way += way->key != key;
	tier = way->settled ^ atomic_load_explicit(&route->stamp, memory_order_relaxed);
	if (TM_UNLIKELY(way->key != key || tier - TM_TIER_PERSISTENT > TM_TIER_TEMPORARY - 1 ||
			way->left == 0 || mine->left == 0 || size >= TM_PHASE_MODEL_BYTES))
		return false;
	way->left--;
	mine->left--;
	mine->local.born_bytes += size;
	mine->local.large_bytes += size >= TM_PHASE_LARGE_BYTES ? size : 0;
	*ret_decision = (struct tm_route_decision){
		.site = way->index,
		.tier = (uint8_t)tier,
		.authority = TM_AUTHORITY_LEARNED,
		.epoch = tm_lifetime_now(&route->epoch) & TM_LIFETIME_EPOCH_MASK,
	};
	return true;
}

/* Decides the tier of one request and counts the birth. */
TM_INLINE struct tm_route_decision tm_route_decide(struct tm_route *route,
						   struct tm_route_thread *mine,
						   const struct tm_route_request *request)
{
	bool large = request->size >= TM_PHASE_LARGE_BYTES;
	uint64_t key = tm_sites_key_fine(request->return_address, request->height, large);
	struct tm_route_decision d;

	if (TM_LIKELY(tm_route_recall(route, mine, key, request->size, &d)))
		return d;
	return tm_route_decide_slow(route, mine, request);
}

/* Prefetches the record that tm_route_freed will read for a block of this site. */
TM_INLINE void tm_route_will_free(const struct tm_route *route, uint16_t site)
{
	__builtin_prefetch(&route->sites.record[site]);
}

/*
 * Counts the death of a block. `mine` belongs to the freeing thread. A death with site 0 need not
 * be reported. Fast path: the site's belief is steady and this death confirms it; then 1 death in
 * 16 is counted, with weight 16.
 */
#define TM_ROUTE_FREE_BATCH 16u
TM_INLINE void tm_route_freed(struct tm_route *route, struct tm_route_thread *mine,
			      struct tm_route_death death)
{
	const struct tm_site_record *r = &route->sites.record[death.site];
	uint32_t age = tm_lifetime_age(tm_lifetime_now(&route->epoch), death.epoch);
	bool is_short = age <= TM_LIFETIME_SHORT;

	if (TM_LIKELY(atomic_load_explicit(&r->steady, memory_order_relaxed) &&
		      is_short == (tm_lifetime_belief(r) == TM_TIER_TEMPORARY) &&
		      (mine->frees + 1) % TM_ROUTE_FREE_BATCH != 0)) {
		mine->frees++;
		mine->local.died_bytes += death.bytes;
		mine->local.large_bytes -= death.bytes >= TM_PHASE_LARGE_BYTES ? death.bytes : 0;
		return;
	}
	tm_route_freed_slow(route, mine, death);
}

/*
 * Births and deaths of a thread's blocks of 1 to 64 KiB from one return address and stack depth,
 * since the last batch; these are not reported one by one. `died_late` are deaths of blocks that
 * already lived at the previous batch.
 */
struct tm_route_batch {
	uintptr_t return_address;
	uint32_t height;
	size_t size; /* typical size, in bytes */
	uint32_t born, died_soon, died_late;
};

/* Learns from a batch. Returns the decision for the next such requests. */
struct tm_route_decision tm_route_batch(struct tm_route *route, struct tm_route_thread *mine,
					const struct tm_route_batch *batch);

/*
 * Counts `requests` requests above 1 KiB of this thread that were not reported one by one. Reads
 * the clock.
 */
void tm_route_heard(struct tm_route *route, struct tm_route_thread *mine, uint32_t requests);

/*
 * Number of the rule that applies to a request of any size, also of sizes that have no decision; 0:
 * none. Slow; learns nothing from the request.
 */
unsigned tm_route_rule(struct tm_route *route, struct tm_route_thread *mine,
		       const struct tm_route_request *request);

/*
 * What the rules say about a request of 1 to 64 KiB; tier TM_TIER_ALL: nothing. Learns nothing from
 * the request. *ret_reached is false if no rule can apply to any size in that range at this return
 * address.
 */
struct tm_route_decision tm_route_ruled(struct tm_route *route, struct tm_route_thread *mine,
					const struct tm_route_request *request, bool *ret_reached);

/* To be called after rules were added: invalidates the cached decisions. */
void tm_route_rules_added(struct tm_route *route);

/*
 * Decision that the site's next block would get, for reports: tier and authority, and the rule that
 * decided last.
 */
struct tm_route_decision tm_route_look(const struct tm_route *route, uint16_t site);

/* The program marks a step (tiermalloc_step): a new epoch begins, and the phase is serving. */
void tm_route_step(struct tm_route *route);

/* To be called after dlclose: forgets all sites and ranges with addresses in [begin, end). */
void tm_route_forget(struct tm_route *route, uintptr_t begin, uintptr_t end);

/* "rule", "learned" ...; "none" for a value out of range. */
const char *tm_route_authority_name(enum tm_authority authority);
enum tm_authority tm_route_authority_of(struct tm_str name);

#endif
