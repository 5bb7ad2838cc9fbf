/* SPDX-License-Identifier: MIT */
/* route: see route.h. */
#include "policies/route.h"

/* A thread hands its notes over after so many requests, or so many bytes. */
#define FLUSH_EVENTS 64u
#define FLUSH_BYTES (UINT64_C(1) << 20)

/* tm_site_record.rules */
enum { RULES_UNKNOWN, RULES_NONE, RULES_SOME };

static const char *const names[] = {
	"none",
#define X(authority, name, meaning) name,
#include "shim/base/authorities.def"
#undef X
};

const char *tm_route_authority_name(enum tm_authority authority)
{
	return names[(unsigned)authority < TM_AUTHORITY_COUNT ? authority : 0];
}

enum tm_authority tm_route_authority_of(struct tm_str name)
{
	for (unsigned i = 1; i < TM_AUTHORITY_COUNT; i++) {
		if (tm_str_is(name, names[i]))
			return (enum tm_authority)i;
	}
	return TM_AUTHORITY_NONE;
}

void tm_route_init(struct tm_route *route, const struct tm_route_memory *memory)
{
	tm_sites_init(&route->sites, memory->sites);
	route->site_rules = memory->site_rules;
}

void tm_route_thread_begin(struct tm_route_thread *mine, const char *name)
{
	size_t i;

	for (i = 0; name && name[i] && i < sizeof(mine->name) - 1; i++)
		mine->name[i] = name[i];
	mine->name[i] = '\0';
	mine->thread_rules_generation = 0;
}

/* --- rules ------------------------------------------------------------------------------------ */

/* A new site, or rules were added: work out which rules its place lets through. */
static TM_NOINLINE unsigned place_rules(struct tm_route *route, uint16_t index)
{
	struct tm_site_record *r = &route->sites.record[index];
	uint16_t generation =
		(uint16_t)atomic_load_explicit(&route->rules->generation, memory_order_acquire);
	struct tm_rules_place place = {.address = r->return_address};
	struct tm_rules_set *set = &route->site_rules[index];
	unsigned known;

	if (route->where && route->rules->by_place)
		route->where(route->where_context, r->return_address, &place);
	tm_rules_match_place(route->rules, route->ranges, &place, set);
	known = tm_rules_set_is_empty(set) ? RULES_NONE : RULES_SOME;
	atomic_store_explicit(&r->rules_generation, generation, memory_order_relaxed);
	atomic_store_explicit(&r->rules, (uint16_t)known, memory_order_release);
	return known;
}

static const struct tm_rules_set *thread_rules(struct tm_route *route, struct tm_route_thread *mine)
{
	uint32_t generation = atomic_load_explicit(&route->rules->generation, memory_order_acquire);

	if (TM_UNLIKELY(mine->thread_rules_generation != generation)) {
		tm_rules_match_thread(route->rules, tm_str_of(mine->name), &mine->thread_rules);
		mine->thread_rules_generation = generation;
	}
	return &mine->thread_rules;
}

static TM_NOINLINE uint32_t rule_of(struct tm_route *route, struct tm_route_thread *mine,
				    uint16_t index, const struct tm_route_request *request)
{
	struct tm_site_record *r = &route->sites.record[index];
	unsigned known = atomic_load_explicit(&r->rules, memory_order_acquire);

	if (index == 0)
		return 0;
	if (known == RULES_UNKNOWN ||
	    atomic_load_explicit(&r->rules_generation, memory_order_relaxed) !=
		    (uint16_t)atomic_load_explicit(&route->rules->generation, memory_order_relaxed))
		known = place_rules(route, index);
	if (known != RULES_SOME)
		return 0;
	return tm_rules_match(route->rules, &route->site_rules[index], thread_rules(route, mine),
			      &(struct tm_rules_request){request->size, request->align,
							 tm_phase_now(&route->phase)});
}

/* --- sites ------------------------------------------------------------------------------------ */

static TM_NOINLINE uint16_t enter(struct tm_route *route, struct tm_sites_cache *cache,
				  const struct tm_route_request *request, uint64_t key)
{
	struct tm_sites_way *set = cache->way[key % TM_SITES_CACHE_SETS];
	struct tm_site_birth birth = {.key = tm_sites_key_coarse(request->return_address),
				      .return_address = request->return_address,
				      .level = TM_SITE_COARSE};
	uint16_t index = tm_sites_enter(&route->sites, &birth);

	set[1] = set[0];
	set[0] = (struct tm_sites_way){.key = index ? key : 0, .index = index};
	return index;
}

static uint16_t site_of(struct tm_route *route, struct tm_sites_cache *cache,
			const struct tm_route_request *request)
{
	uint64_t key = tm_sites_key_fine(request->return_address, request->height);
	struct tm_sites_way *set = cache->way[key % TM_SITES_CACHE_SETS];

	if (TM_LIKELY(set[0].key == key))
		return set[0].index;
	if (set[1].key == key) {
		struct tm_sites_way hit = set[1];

		set[1] = set[0];
		set[0] = hit;
		return hit.index;
	}
	return enter(route, cache, request, key);
}

/* --- decisions -------------------------------------------------------------------------------- */

static void note(struct tm_route *route, struct tm_route_thread *mine)
{
	tm_phase_flush(&route->phase, &mine->local);
	tm_epoch_stream(&route->epoch,
			atomic_load_explicit(&route->phase.born_bytes, memory_order_relaxed));
}

struct tm_route_decision tm_route_decide(struct tm_route *route, struct tm_route_thread *mine,
					 const struct tm_route_request *request)
{
	uint16_t index = site_of(route, &mine->cache, request);
	const struct tm_site_record *r = &route->sites.record[index];
	struct tm_route_decision d = {.site = index, .epoch = (uint8_t)tm_epoch_now(&route->epoch)};
	uint8_t tier = atomic_load_explicit(&r->tier, memory_order_relaxed);

	mine->local.born_bytes += request->size;
	if (++mine->local.events >= FLUSH_EVENTS || mine->local.born_bytes >= FLUSH_BYTES)
		note(route, mine);
	if (tm_phase_now(&route->phase) == TM_PHASE_LOAD) {
		d.tier = TM_TIER_PERSISTENT;
		d.authority = TM_AUTHORITY_PHASE;
	} else if (tier != TM_TIER_ALL) {
		d.tier = tier;
		d.authority = atomic_load_explicit(&r->authority, memory_order_relaxed);
	} else {
		d.tier = TM_TIER_SESSION;
		d.authority = TM_AUTHORITY_DEFAULT;
	}
	if (TM_UNLIKELY(route->rules != NULL)) {
		d.rule = (uint16_t)rule_of(route, mine, index, request);
		if (d.rule && tm_rules_actions(route->rules, d.rule)->tier) {
			d.tier = tm_rules_actions(route->rules, d.rule)->tier;
			d.authority = TM_AUTHORITY_RULE;
		}
	}
	return d;
}

void tm_route_freed(struct tm_route *route, struct tm_route_thread *mine,
		    const struct tm_route_death *death)
{
	struct tm_site_record *r = &route->sites.record[death->site];
	uint32_t age = tm_lifetime_age8(tm_epoch_now(&route->epoch), death->epoch);
	_Atomic uint32_t *count = age <= TM_LIFETIME_SHORT ? &r->shorts : &r->longs;
	uint32_t shorts, longs;

	mine->local.died_bytes += death->bytes;
	if (death->site == 0 || tm_phase_now(&route->phase) == TM_PHASE_LOAD)
		return;
	atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
	shorts = atomic_load_explicit(&r->shorts, memory_order_relaxed);
	longs = atomic_load_explicit(&r->longs, memory_order_relaxed);
	atomic_store_explicit(&r->authority, TM_AUTHORITY_LEARNED, memory_order_relaxed);
	atomic_store_explicit(&r->tier, shorts >= longs ? TM_TIER_TEMPORARY : TM_TIER_SESSION,
			      memory_order_relaxed);
}

void tm_route_step(struct tm_route *route)
{
	tm_phase_step(&route->phase);
	tm_epoch_raise(&route->epoch);
}

void tm_route_tick(struct tm_route *route, uint64_t now_ms)
{
	(void)route;
	(void)now_ms;
}

void tm_route_forget(struct tm_route *route, uintptr_t begin, uintptr_t end)
{
	tm_sites_forget(&route->sites, begin, end);
	if (route->ranges)
		tm_rules_ranges_forget(route->ranges, begin, end);
}
