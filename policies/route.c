/* SPDX-License-Identifier: MIT */
/* route: see route.h. */
#include "policies/route.h"

#include "shim/base/bits.h"

/*
 * The clock is read about every CLOCK_MS milliseconds, and after at most CLOCK_REQUESTS + 1 (2^n)
 * requests.
 */
#define CLOCK_MS 25u
#define CLOCK_REQUESTS 255u
/*
 * Births are handed to the record one by one at first, later in batches of 1/8 of its count, at
 * most BORN_BATCH.
 */
#define BORN_SHARE 8u
#define BORN_BATCH 64u
/* Most births, or deaths, that one tm_route_batch counts. */
#define BATCH_MAX 1024u
/* A record takes over its parent's prediction until it has this many births. */
#define INHERIT_BIRTHS 16u
/*
 * Large blocks up to this size are predicted from the small blocks of the same return address until
 * they have a record of their own.
 */
#define LIKE_SMALL_MAX ((size_t)1 << 20)
/* A block of at least this size may be a model, or a good part of one. */
#define MODEL_BYTES ((size_t)1 << 20)

/* Values of tm_site_record.rules. */
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
	atomic_store_explicit(&route->stamp, TM_ROUTE_STAMP_NONE, memory_order_relaxed);
}

void tm_route_thread_begin(struct tm_route_thread *mine, const char *name)
{
	size_t i;

	for (i = 0; name && name[i] && i < sizeof(mine->name) - 1; i++)
		mine->name[i] = name[i];
	mine->name[i] = '\0';
	mine->thread_rules_generation = 0;
}

/* --- finished decisions ----------------------------------------------------------------------- */

/*
 * Called after anything that may change a decision. The stamp holds 14 bits of a counter: a
 * decision cached exactly one turn of the counter ago becomes valid again by mistake, which costs
 * no more than any other wrong guess.
 */
static void renew_stamp(struct tm_route *route)
{
	uint32_t beliefs = atomic_load_explicit(&route->sites.beliefs, memory_order_relaxed);
	uint32_t stamp = tm_phase_now(&route->phase) == TM_PHASE_LOAD ? TM_ROUTE_STAMP_NONE
								      : beliefs << 2 & 0xffffu;

	if (atomic_load_explicit(&route->stamp, memory_order_relaxed) != stamp)
		atomic_store_explicit(&route->stamp, stamp, memory_order_relaxed);
}

/*
 * Caches decision `d` in `way`, where the next request of this kind looks first, if the belief of
 * the way's own record is all that it rests on.
 */
static void settle(struct tm_route *route, struct tm_sites_way *way, struct tm_route_decision d)
{
	const struct tm_site_record *r = &route->sites.record[way->index];
	uint32_t belief = atomic_load_explicit(&r->belief, memory_order_relaxed);
	uint32_t stamp = atomic_load_explicit(&route->stamp, memory_order_relaxed);

	way->settled = 0;
	if (r->level == TM_SITE_SIZED || stamp == TM_ROUTE_STAMP_NONE || belief != d.tier ||
	    d.authority != TM_AUTHORITY_LEARNED)
		return;
	if (route->rules != NULL &&
	    atomic_load_explicit(&r->rules, memory_order_relaxed) != RULES_NONE)
		return;
	way->settled = (uint16_t)(stamp | d.tier);
}

void tm_route_rules_added(struct tm_route *route)
{
	atomic_fetch_add_explicit(&route->sites.beliefs, 1, memory_order_relaxed);
	renew_stamp(route);
}

/* --- rules ------------------------------------------------------------------------------------ */

/*
 * Computes which rules match the place of a site; needed for a new site and after rules were added.
 */
static TM_NOINLINE unsigned place_rules(struct tm_route *route, uint16_t index)
{
	struct tm_site_record *r = &route->sites.record[index];
	uint32_t generation = atomic_load_explicit(&route->rules->generation, memory_order_acquire);
	struct tm_rules_place place = {.address = r->return_address};
	struct tm_rules_set *set = &route->site_rules[index];
	unsigned known;

	if (route->where && route->rules->by_place)
		route->where(route->context, r->return_address, &place);
	tm_rules_match_place(route->rules, route->ranges, &place, set);
	known = tm_rules_set_is_empty(route->rules, set) ? RULES_NONE : RULES_SOME;
	atomic_store_explicit(&r->rules_generation, generation, memory_order_relaxed);
	atomic_store_explicit(&r->rules, (uint8_t)known, memory_order_release);
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
		    atomic_load_explicit(&route->rules->generation, memory_order_relaxed))
		known = place_rules(route, index);
	if (known != RULES_SOME)
		return 0;
	return tm_rules_match(
		route->rules, &route->site_rules[index], thread_rules(route, mine),
		&(struct tm_rules_request){request->asked ? request->asked : request->size,
					   request->align, tm_phase_now(&route->phase)});
}

/* --- sites ------------------------------------------------------------------------------------ */

static void count_birth(struct tm_route *route, struct tm_sites_way *way)
{
	uint32_t born;

	if (way->left != 0) {
		way->left--;
		return;
	}
	born = tm_lifetime_born(&route->sites, way->index, tm_lifetime_time(&route->epoch),
				way->batch);
	way->batch = (uint16_t)(born < BORN_SHARE                ? 1
				: born / BORN_SHARE < BORN_BATCH ? born / BORN_SHARE
								 : BORN_BATCH);
	way->left = (uint16_t)(way->batch - 1);
}

static struct tm_sites_way fresh_way(uint64_t key, uint16_t index)
{
	return (struct tm_sites_way){.key = index ? key : 0, .index = index, .batch = 1};
}

/* Hands the way's pending births to the record before the way is reused for another key. */
static void evict(struct tm_route *route, struct tm_sites_way *way)
{
	uint32_t pending = way->batch ? way->batch - 1u - way->left : 0;

	if (pending)
		tm_lifetime_born(&route->sites, way->index, tm_lifetime_time(&route->epoch),
				 pending);
}

/* The cache way of a key; creates the record from `birth` if there is none. */
static struct tm_sites_way *way_of(struct tm_route *route, struct tm_sites_cache *cache,
				   uint64_t key, const struct tm_site_birth *birth)
{
	struct tm_sites_way *set = cache->way[tm_sites_set(key)];

	if (set[0].key == key)
		return &set[0];
	if (set[1].key == key)
		return &set[1];
	evict(route, &set[1]);
	set[1] = set[0];
	set[0] = fresh_way(key, tm_sites_enter(&route->sites, birth));
	return &set[0];
}

/* Size class: a quarter of a power of two. */
static unsigned size_class(size_t size)
{
	unsigned log = 63u - (unsigned)__builtin_clzll((uint64_t)size | 4);

	return log * 4 + (unsigned)(size >> (log - 2) & 3);
}

/*
 * The record of `way` is mixed: makes the way point to a finer record, and returns the way to use.
 */
static struct tm_sites_way *finer(struct tm_route *route, struct tm_sites_cache *cache,
				  const struct tm_route_request *request, struct tm_sites_way *way)
{
	uint64_t key = way->key;
	struct tm_site_birth birth = {.key = key,
				      .return_address = request->return_address,
				      .height = request->height,
				      .parent = way->index,
				      .level = TM_SITE_FINE};
	uint16_t fine = way->index;

	if (route->sites.record[fine].level == TM_SITE_COARSE) {
		fine = tm_sites_enter(&route->sites, &birth);
		if (fine == 0)
			return way;
		evict(route, way);
		*way = fresh_way(key, fine);
	}
	if (!tm_lifetime_is_mixed(&route->sites.record[fine]))
		return way;
	birth.parent = fine;
	birth.level = TM_SITE_SIZED;
	birth.size_log2 = (uint8_t)tm_bits_log2(request->size | 1);
	birth.key = tm_sites_key_sized(key, size_class(request->size));
	return way_of(route, cache, birth.key, &birth);
}

static struct tm_sites_way *site_of(struct tm_route *route, struct tm_sites_cache *cache,
				    const struct tm_route_request *request)
{
	bool large = request->size >= TM_PHASE_LARGE_BYTES;
	struct tm_site_birth birth = {.key = tm_sites_key_coarse(request->return_address, large),
				      .return_address = request->return_address,
				      .level = TM_SITE_COARSE};
	struct tm_sites_way *way;

	way = way_of(route, cache,
		     tm_sites_key_fine(request->return_address, request->height, large), &birth);
	if (tm_lifetime_is_mixed(&route->sites.record[way->index]))
		way = finer(route, cache, request, way);
	if (way->index != 0)
		count_birth(route, way);
	return way;
}

/* --- decisions -------------------------------------------------------------------------------- */

static void hand_over(struct tm_route *route, struct tm_route_thread *mine)
{
	tm_phase_flush(&route->phase, &mine->local, mine->counted - mine->left);
	mine->counted = mine->left;
}

static void check_generation(struct tm_route *route, struct tm_sites_cache *cache)
{
	uint32_t generation = atomic_load_explicit(&route->sites.generation, memory_order_acquire);

	if (TM_LIKELY(cache->generation == generation))
		return;
	__builtin_memset(cache->way, 0, sizeof(cache->way));
	cache->generation = generation;
}

/*
 * Aims at one clock read every CLOCK_MS: rare requests read the clock each time, frequent ones
 * after up to 256. Ways of withdrawn records stay in the cache until then; that is harmless, since
 * those records still exist and only can't be found by key any more.
 */
static void look_at_clock(struct tm_route *route, struct tm_route_thread *mine)
{
	uint64_t now;

	hand_over(route, mine);
	check_generation(route, &mine->cache);
	if (route->clock != NULL) {
		now = route->clock(route->context);
		if (now - mine->asked_ms > CLOCK_MS)
			mine->pause /= 2;
		else if (mine->pause < CLOCK_REQUESTS)
			mine->pause = mine->pause * 2 + 1;
		mine->asked_ms = now;
		tm_lifetime_tick(&route->epoch, now);
	} else {
		mine->pause = CLOCK_REQUESTS;
	}
	mine->left = mine->counted = mine->pause + 1;
}

/*
 * Prediction of a site's record, or of its parents' while it has few births and predicts nothing
 * itself.
 */
static enum tm_tier learned(const struct tm_route *route, uint16_t index, enum tm_phase_kind phase)
{
	enum tm_tier tier = TM_TIER_ALL;

	while (index != 0 && tier == TM_TIER_ALL) {
		const struct tm_site_record *r = &route->sites.record[index];

		tier = phase == TM_PHASE_LOAD
			       ? tm_lifetime_loading(r)
			       : tm_lifetime_serving(r, tm_lifetime_time(&route->epoch));
		index = r->parent;
		if (atomic_load_explicit(&r->born, memory_order_relaxed) > INHERIT_BIRTHS)
			break;
	}
	return tier;
}

/* For the first large blocks of a return address: temporary if its small blocks mostly are. */
static enum tm_tier as_the_small(struct tm_route *route, const struct tm_site_record *r)
{
	uint16_t small =
		tm_sites_find(&route->sites, tm_sites_key_coarse(r->return_address, false));

	if (small == 0 || atomic_load_explicit(&r->born, memory_order_relaxed) > INHERIT_BIRTHS)
		return TM_TIER_ALL;
	return tm_lifetime_mostly(&route->sites.record[small]);
}

/*
 * While loading, marks that a block of a model's size came from here. While serving, true if one
 * did; the caller asks only if the site predicts nothing, that is, freed nothing. Such a block is
 * treated as if loading went on.
 */
static bool is_of_model(struct tm_site_record *r, enum tm_phase_kind phase)
{
	if (phase == TM_PHASE_SERVE)
		return atomic_load_explicit(&r->loaded, memory_order_relaxed);
	atomic_store_explicit(&r->loaded, 1, memory_order_relaxed);
	return false;
}

static struct tm_route_decision decision(const struct tm_route *route, uint16_t site,
					 enum tm_tier tier)
{
	struct tm_route_decision d = {
		.site = site,
		.authority = TM_AUTHORITY_LEARNED,
		.epoch = tm_lifetime_now(&route->epoch) & TM_LIFETIME_EPOCH_MASK,
	};

	if (tier == TM_TIER_ALL && tm_phase_now(&route->phase) == TM_PHASE_LOAD) {
		tier = TM_TIER_PERSISTENT;
		d.authority = TM_AUTHORITY_PHASE;
	} else if (tier == TM_TIER_ALL) {
		tier = TM_TIER_SESSION;
		d.authority = TM_AUTHORITY_DEFAULT;
	}
	d.tier = (uint8_t)tier;
	return d;
}

/* Decision for a large block, whose birth is reported to the phase on its own. */
static struct tm_route_decision decide_large(struct tm_route *route, uint16_t index, size_t size)
{
	enum tm_tier tier = learned(route, index, tm_phase_now(&route->phase));
	struct tm_site_record *r = &route->sites.record[index];
	struct tm_route_decision d;
	enum tm_phase_kind phase;

	tm_phase_large_born(&route->phase, size);
	if (tier != TM_TIER_TEMPORARY)
		tm_phase_large_kept(&route->phase);
	phase = tm_phase_now(&route->phase);
	tier = learned(route, index, phase);
	if (tier == TM_TIER_ALL && phase == TM_PHASE_SERVE && size <= LIKE_SMALL_MAX)
		tier = as_the_small(route, r);
	d = decision(route, index, tier);
	if (tier == TM_TIER_ALL && size >= MODEL_BYTES && is_of_model(r, phase)) {
		d.tier = TM_TIER_PERSISTENT;
		d.authority = TM_AUTHORITY_PHASE;
	}
	return d;
}

static uint8_t authority_of(const struct tm_route *route, uint16_t rule)
{
	return route->rules->rule[rule - 1].is_profile ? TM_AUTHORITY_PROFILE : TM_AUTHORITY_RULE;
}

static void note_rule(struct tm_site_record *r, uint16_t rule)
{
	if (rule != 0 && atomic_load_explicit(&r->ruled, memory_order_relaxed) != rule)
		atomic_store_explicit(&r->ruled, rule, memory_order_relaxed);
}

static void obey_rules(struct tm_route *route, struct tm_route_thread *mine,
		       const struct tm_route_request *request, struct tm_route_decision *d)
{
	struct tm_site_record *r = &route->sites.record[d->site];

	d->rule = (uint16_t)rule_of(route, mine, d->site, request);
	if (atomic_load_explicit(&r->rule, memory_order_relaxed) != d->rule)
		atomic_store_explicit(&r->rule, d->rule, memory_order_relaxed);
	note_rule(r, d->rule);
	if (d->rule && tm_rules_actions(route->rules, d->rule)->tier) {
		d->tier = tm_rules_actions(route->rules, d->rule)->tier;
		d->authority = authority_of(route, d->rule);
	}
}

TM_NOINLINE struct tm_route_decision tm_route_decide_slow(struct tm_route *route,
							  struct tm_route_thread *mine,
							  const struct tm_route_request *request)
{
	bool large = request->size >= TM_PHASE_LARGE_BYTES;
	struct tm_sites_way *way;
	struct tm_route_decision d;
	uint16_t site;

	/*
	 * Next to a large block's cost reading the clock is free, and the phase must judge it by
	 * what came before.
	 */
	mine->local.born_bytes += request->size;
	if (mine->left == 0 || large)
		look_at_clock(route, mine);
	mine->left--;
	way = site_of(route, &mine->cache, request);
	site = way->index;
	d = large ? decide_large(route, site, request->size)
		  : decision(route, site, learned(route, site, tm_phase_now(&route->phase)));
	if (TM_UNLIKELY(route->rules != NULL) && site != 0)
		obey_rules(route, mine, request, &d);
	renew_stamp(route);
	settle(route, way, d);
	return d;
}

unsigned tm_route_rule(struct tm_route *route, struct tm_route_thread *mine,
		       const struct tm_route_request *request)
{
	bool large = request->size >= TM_PHASE_LARGE_BYTES;
	struct tm_site_birth birth = {.key = tm_sites_key_coarse(request->return_address, large),
				      .return_address = request->return_address,
				      .level = TM_SITE_COARSE};
	uint16_t index = tm_sites_enter(&route->sites, &birth);
	uint32_t rule = rule_of(route, mine, index, request);

	if (index != 0)
		note_rule(&route->sites.record[index], (uint16_t)rule);
	return rule;
}

struct tm_route_decision tm_route_ruled(struct tm_route *route, struct tm_route_thread *mine,
					const struct tm_route_request *request, bool *ret_reached)
{
	bool large = request->size >= TM_PHASE_LARGE_BYTES;
	struct tm_site_birth birth = {.key = tm_sites_key_coarse(request->return_address, large),
				      .return_address = request->return_address,
				      .level = TM_SITE_COARSE};
	struct tm_route_decision d = {.site = tm_sites_enter(&route->sites, &birth),
				      .tier = TM_TIER_ALL};

	*ret_reached = true;
	if (route->rules == NULL || d.site == 0)
		return d;
	obey_rules(route, mine, request, &d);
	if (d.rule == 0)
		*ret_reached = tm_rules_reach_medium(route->rules, &route->site_rules[d.site]);
	return d;
}

void tm_route_heard(struct tm_route *route, struct tm_route_thread *mine, uint32_t requests)
{
	tm_phase_flush(&route->phase, &mine->local, requests);
	if (route->clock != NULL)
		tm_lifetime_tick(&route->epoch, route->clock(route->context));
	renew_stamp(route);
}

struct tm_route_decision tm_route_batch(struct tm_route *route, struct tm_route_thread *mine,
					const struct tm_route_batch *batch)
{
	struct tm_route_request request = {.size = batch->size,
					   .align = 16,
					   .return_address = batch->return_address,
					   .height = batch->height};
	uint32_t born = batch->born, soon = batch->died_soon, late = batch->died_late;
	uint16_t site = site_of(route, &mine->cache, &request)->index;
	struct tm_route_decision d;

	/*
	 * Limits the weight of one batch, so that a busy thread does not outweigh all that is
	 * known.
	 */
	for (; born > BATCH_MAX || soon + late > BATCH_MAX; born /= 2, soon /= 2, late /= 2)
		;
	if (site != 0 && born != 0)
		tm_lifetime_born(&route->sites, site, tm_lifetime_time(&route->epoch), born);
	if (soon != 0)
		tm_lifetime_learn(&route->sites, site, 0, soon);
	if (late != 0)
		tm_lifetime_learn(&route->sites, site, TM_LIFETIME_SHORT + 1, late);
	renew_stamp(route);
	d = decision(route, site, learned(route, site, tm_phase_now(&route->phase)));
	if (TM_UNLIKELY(route->rules != NULL) && site != 0)
		obey_rules(route, mine, &request, &d);
	return d;
}

TM_NOINLINE void tm_route_freed_slow(struct tm_route *route, struct tm_route_thread *mine,
				     struct tm_route_death death)
{
	const struct tm_site_record *r = &route->sites.record[death.site];
	uint32_t age = tm_lifetime_age(tm_lifetime_now(&route->epoch), death.epoch);
	bool is_short = age <= TM_LIFETIME_SHORT;
	uint32_t count = 1;

	mine->local.died_bytes += death.bytes;
	if (death.bytes >= TM_PHASE_LARGE_BYTES)
		tm_phase_large_died(&route->phase, death.bytes);
	if (death.site == 0)
		return;
	if (atomic_load_explicit(&r->steady, memory_order_relaxed) &&
	    is_short == (tm_lifetime_belief(r) == TM_TIER_TEMPORARY)) {
		if (++mine->frees % TM_ROUTE_FREE_BATCH != 0)
			return;
		count = TM_ROUTE_FREE_BATCH;
	}
	tm_lifetime_learn(&route->sites, death.site, age, count);
	renew_stamp(route);
}

struct tm_route_decision tm_route_look(const struct tm_route *route, uint16_t site)
{
	struct tm_route_decision d =
		decision(route, site, learned(route, site, tm_phase_now(&route->phase)));

	d.rule = atomic_load_explicit(&route->sites.record[site].rule, memory_order_relaxed);
	if (d.rule && tm_rules_actions(route->rules, d.rule)->tier) {
		d.tier = tm_rules_actions(route->rules, d.rule)->tier;
		d.authority = authority_of(route, d.rule);
	}
	return d;
}

void tm_route_step(struct tm_route *route)
{
	tm_phase_step(&route->phase);
	tm_lifetime_step(&route->epoch);
	renew_stamp(route);
}

void tm_route_forget(struct tm_route *route, uintptr_t begin, uintptr_t end)
{
	tm_sites_forget(&route->sites, begin, end);
	if (route->ranges)
		tm_rules_ranges_forget(route->ranges, begin, end);
}
