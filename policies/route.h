/* SPDX-License-Identifier: MIT */
/*
 * route: which tier a request goes to, and who said so. Order of authority: rule > profile > learned >
 * phase and size > default. Asked for requests above 1 KiB only; smaller ones go by the phase alone
 * (tm_phase_now).
 *
 * Pure: no system call, no clock, no allocation, no lock. Any thread may call; a struct
 * tm_route_thread belongs to one thread at a time (a heap's owner). Not reentrant for the same
 * tm_route_thread: a signal handler that allocates meanwhile goes elsewhere, as it does for heaps.
 *
 *     struct tm_route_decision d = tm_route_decide(route, mine, &request);
 * then place the block, keep d.site and d.epoch with it, and when it dies:
 *     tm_route_freed(route, mine, (struct tm_route_death){d.site, d.epoch, bytes});
 *
 * realloc is a death and a birth, also where the block stays in its place.
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

/* Requests up to this many bytes never come here. */
#define TM_ROUTE_MIN_BYTES 1024u

struct tm_route_request {
	size_t size;
	size_t align;
	uintptr_t return_address;
	uint32_t height; /* of the stack at the call, in 16 bytes: (stack top - frame) >> 4 */
	size_t asked;    /* by the program, which is what rules look at; 0: `size` */
};

struct tm_route_decision {
	uint16_t site;     /* name it when the block dies; 0: nothing is kept of it */
	uint16_t rule;     /* tm_rules_actions(route->rules, rule), where not 0 */
	uint8_t tier;      /* enum tm_tier, never TM_TIER_ALL */
	uint8_t authority; /* enum tm_authority */
	uint8_t epoch;     /* of the birth, 7 bits: site and epoch fit into 23 */
	uint8_t unused;
};
_Static_assert(sizeof(struct tm_route_decision) == 8, "returned in a register");

struct tm_route_death {
	uint16_t site;
	uint8_t epoch;
	uint64_t bytes; /* requested */
};

/* What the caller knows of an address; asked once for each new call site, on a slow path. */
typedef void tm_route_where(void *context, uintptr_t return_address, struct tm_rules_place *place);

/* Milliseconds of any clock that never goes back; asked once in a while by the threads that decide. */
typedef uint64_t tm_route_clock(void *context);

/* One per process, zeroed before tm_route_init. */
struct tm_route {
	struct tm_sites sites;
	/*
	 * What a way's `settled` is compared with, less its two bits of tier; above 16 bits: none holds.
	 * Rarely written, as `epoch` is; counters that all threads write have a line of their own.
	 */
	_Atomic uint32_t stamp;
	struct tm_lifetime_epoch epoch;
	struct tm_rules *rules;         /* [const] NULL: none */
	struct tm_rules_ranges *ranges; /* [const] NULL: no symbol rules */
	struct tm_rules_set
		*site_rules;   /* [const] NULL: none; else TM_SITES_COUNT sets, lent zeroed */
	tm_route_where *where; /* [const] NULL: nothing is known of addresses */
	tm_route_clock *clock; /* [const] NULL: epochs come from tm_route_step alone */
	void *context;         /* [const] of where and clock */
	TM_ALIGNED(TM_CACHE_LINE) struct tm_phase phase;
};

/* One per heap, zeroed: 16 KiB and some. [owner] */
struct tm_route_thread {
	struct tm_sites_cache cache;
	struct tm_phase_local local;
	uint32_t left;    /* requests until notes are handed over and the clock is asked */
	uint32_t counted; /* what `left` was when requests were last counted */
	uint32_t pause;   /* what `left` starts from */
	uint32_t frees;   /* for sampling */
	uint64_t asked_ms;
	uint32_t thread_rules_generation; /* of thread_rules; 0: not worked out */
	struct tm_rules_set thread_rules;
	char name[16]; /* of the thread, for thread= rules; "" until told */
};

struct tm_route_memory {
	void *sites;      /* TM_SITES_BYTES of zeros */
	void *site_rules; /* TM_ROUTE_SITE_RULES_BYTES of zeros; NULL where there are no rules */
};
#define TM_ROUTE_SITE_RULES_BYTES (sizeof(struct tm_rules_set) * TM_SITES_COUNT)

void tm_route_init(struct tm_route *route, const struct tm_route_memory *memory);

/* A thread takes over `mine` (a new or adopted heap), or its name has changed. `name` may be NULL. */
void tm_route_thread_begin(struct tm_route_thread *mine, const char *name);

/* The two below without their fast paths. */
struct tm_route_decision tm_route_decide_slow(struct tm_route *route, struct tm_route_thread *mine,
					      const struct tm_route_request *request);
void tm_route_freed_slow(struct tm_route *route, struct tm_route_thread *mine,
			 struct tm_route_death death);

/* No way is settled: the program loads. */
#define TM_ROUTE_STAMP_NONE 0x10000u

/*
 * The fast path of tm_route_decide, whose arguments these are: serving, a way of the cache that holds a
 * finished decision, neither clock nor counts are due. It reads the way, and nothing of the record. False:
 * nothing was done. Of the request only what is looked at, so that it need not lie in memory.
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

/* The decision. */
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

/* The death of a block of this site will be told: what that reads may be fetched meanwhile. */
TM_INLINE void tm_route_will_free(const struct tm_route *route, uint16_t site)
{
	__builtin_prefetch(&route->sites.record[site]);
}

/*
 * The block dies. `mine` is the freeing thread's. A death with site 0 may be left out. The fast path:
 * the site is known well and this death is no surprise; one of 16 is counted.
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
 * What a thread's blocks between 1 and 64 KiB did since it was looked at last, of one return address and
 * height: nobody told of them one by one. `died_late`: they were there at the look before.
 */
struct tm_route_batch {
	uintptr_t return_address;
	uint32_t height;
	size_t size; /* usual */
	uint32_t born, died_soon, died_late;
};

/* They are learned from; what the next ones get. */
struct tm_route_decision tm_route_batch(struct tm_route *route, struct tm_route_thread *mine,
					const struct tm_route_batch *batch);

/* So many requests above 1 KiB of this thread were not told one by one. Looks at the clock. */
void tm_route_heard(struct tm_route *route, struct tm_route_thread *mine, uint32_t requests);

/*
 * The rule of a request of any size, also of those that nobody decides about; 0: none. Slow, learns nothing.
 */
unsigned tm_route_rule(struct tm_route *route, struct tm_route_thread *mine,
		       const struct tm_route_request *request);

/*
 * What the rules say of a request of 1 to 64 KiB; tier TM_TIER_ALL: nothing. Learns nothing.
 * `ret_reached`: false where no rule can decide about a request of such a size of this return address.
 */
struct tm_route_decision tm_route_ruled(struct tm_route *route, struct tm_route_thread *mine,
					const struct tm_route_request *request, bool *ret_reached);

/* Rules were added: decisions are made anew. */
void tm_route_rules_added(struct tm_route *route);

/* What a record's next block would get, for reports: tier and authority; and the rule that decided last. */
struct tm_route_decision tm_route_look(const struct tm_route *route, uint16_t site);

/* A program that says where its steps are (tiermalloc_step): an epoch begins, serving has begun. */
void tm_route_step(struct tm_route *route);

/* dlclose: what is known of addresses in [begin, end) is forgotten. */
void tm_route_forget(struct tm_route *route, uintptr_t begin, uintptr_t end);

/* "rule", "learned"...; "none" for what is no authority. */
const char *tm_route_authority_name(enum tm_authority authority);
enum tm_authority tm_route_authority_of(struct tm_str name);

#endif
