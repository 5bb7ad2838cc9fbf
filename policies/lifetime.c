/* SPDX-License-Identifier: MIT */
/* lifetime: see lifetime.h. */
#include "policies/lifetime.h"

/*
 * Above this many frees all counts of a record are halved, so that it can follow a site that
 * changes.
 */
#define COUNT_MAX 4096u
/*
 * A record is mixed if, after MIXED_AFTER frees, the rarer kind (short or long lives) makes up more
 * than 1/32 of the frees, or if, after MIXED_AFTER births, more than 1/8 of the blocks born still
 * live.
 */
#define MIXED_AFTER 16u
#define MIXED_AGES 32u
#define MIXED_STAY 8u
/* A belief changes sides at a share of .6, not .5: hysteresis. */
#define TURN_OF 10u
#define TURN_AT 6u
/*
 * After this many frees of the kind believed in, frees that confirm the belief may be sampled
 * (`steady`).
 */
#define STEADY_AFTER 64u
/*
 * While loading, a site is temporary after LOAD_FREES frees if at most 1/16 of its blocks still
 * live.
 */
#define LOAD_FREES 8u
#define LOAD_STAY 16u

#define GET(at) atomic_load_explicit(&(at), memory_order_relaxed)
#define PUT(at, value) atomic_store_explicit(&(at), (value), memory_order_relaxed)
/*
 * A plain load and store instead of a locked add: two threads that count at once may lose a count,
 * which hardly matters to a belief that rests on many.
 */
#define ADD(at, value) PUT(at, GET(at) + (value))

void tm_lifetime_step(struct tm_lifetime_epoch *epoch)
{
	PUT(epoch->told, 1);
	atomic_fetch_add_explicit(&epoch->now, 1, memory_order_relaxed);
}

void tm_lifetime_tick(struct tm_lifetime_epoch *epoch, uint64_t now_ms)
{
	uint64_t mark = GET(epoch->mark_ms);
	uint64_t passed = now_ms - mark;

	if (now_ms < mark || passed < TM_LIFETIME_EPOCH_MS)
		return;
	if (!atomic_compare_exchange_strong_explicit(&epoch->mark_ms, &mark, now_ms,
						     memory_order_relaxed, memory_order_relaxed))
		return;
	/*
	 * The first tick only sets the mark. After a long silence all epochs that have passed are
	 * counted.
	 */
	if (mark == 0)
		return;
	passed /= TM_LIFETIME_EPOCH_MS;
	atomic_fetch_add_explicit(&epoch->time, (uint32_t)passed, memory_order_relaxed);
	if (!GET(epoch->told))
		atomic_fetch_add_explicit(&epoch->now, (uint32_t)passed, memory_order_relaxed);
}

static enum tm_tier side_of(uint32_t shorts, uint32_t longs, enum tm_tier before)
{
	uint64_t all = (uint64_t)shorts + longs;

	if (before == TM_TIER_TEMPORARY)
		return (uint64_t)longs * TURN_OF > all * TURN_AT ? TM_TIER_SESSION
								 : TM_TIER_TEMPORARY;
	if (before == TM_TIER_SESSION)
		return (uint64_t)shorts * TURN_OF > all * TURN_AT ? TM_TIER_TEMPORARY
								  : TM_TIER_SESSION;
	return shorts >= longs ? TM_TIER_TEMPORARY : TM_TIER_SESSION;
}

/* Blocks alive, at least 0: births are handed over late, so frees may exceed the births counted. */
static uint32_t alive(const struct tm_site_record *r)
{
	uint32_t born = GET(r->born), frees = GET(r->shorts) + GET(r->longs);

	return born > frees ? born - frees : 0;
}

static bool is_mixed(const struct tm_site_record *r, uint32_t shorts, uint32_t longs)
{
	uint32_t few = shorts < longs ? shorts : longs;
	uint32_t born = GET(r->born);

	if (r->level + 1 >= TM_SITE_LEVELS)
		return false;
	return (shorts + longs >= MIXED_AFTER && few * MIXED_AGES > shorts + longs) ||
	       (born >= MIXED_AFTER && alive(r) * MIXED_STAY > born);
}

/* Counts frees in one record; true if its belief changed. */
static bool learn(struct tm_site_record *r, uint32_t age, uint32_t count)
{
	uint16_t before = GET(r->belief);
	uint32_t shorts, longs, mixed = before & TM_SITE_MIXED;
	enum tm_tier tier;

	if (age <= TM_LIFETIME_SHORT)
		ADD(r->shorts, count);
	else
		ADD(r->longs, count);
	shorts = GET(r->shorts);
	longs = GET(r->longs);
	tier = side_of(shorts, longs, tm_lifetime_belief(r));
	if (is_mixed(r, shorts, longs))
		mixed = TM_SITE_MIXED;
	PUT(r->belief, (uint16_t)((uint32_t)tier | mixed));
	PUT(r->steady, (tier == TM_TIER_TEMPORARY ? shorts : longs) >= STEADY_AFTER);
	if (shorts + longs > COUNT_MAX) {
		PUT(r->born, alive(r) + shorts / 2 + longs / 2);
		PUT(r->shorts, shorts / 2);
		PUT(r->longs, longs / 2);
	}
	return GET(r->belief) != before;
}

void tm_lifetime_learn(struct tm_sites *sites, uint16_t site, uint32_t age, uint32_t count)
{
	while (site != 0) {
		struct tm_site_record *r = &sites->record[site];

		if (learn(r, age, count))
			ADD(sites->beliefs, 1);
		site = r->parent;
	}
}

uint32_t tm_lifetime_born(struct tm_sites *sites, uint16_t site, uint32_t time, uint32_t count)
{
	uint32_t born = 0;

	for (uint16_t at = site; at != 0; at = sites->record[at].parent) {
		struct tm_site_record *r = &sites->record[at];
		uint32_t before = GET(r->born);

		PUT(r->born, before + count);
		if (before == 0)
			PUT(r->first_time, time);
		if (at == site)
			born = before + count;
	}
	return born;
}

enum tm_tier tm_lifetime_serving(const struct tm_site_record *r, uint32_t time)
{
	enum tm_tier tier = tm_lifetime_belief(r);

	if (TM_LIKELY(tier != TM_TIER_ALL))
		return tier;
	if (GET(r->born) != 0 && time - GET(r->first_time) >= TM_LIFETIME_SETTLED)
		return TM_TIER_PERSISTENT;
	return TM_TIER_ALL;
}

enum tm_tier tm_lifetime_loading(const struct tm_site_record *r)
{
	uint32_t frees = GET(r->shorts) + GET(r->longs);

	if (frees < LOAD_FREES)
		return TM_TIER_ALL;
	if (tm_lifetime_belief(r) == TM_TIER_SESSION)
		return alive(r) <= frees ? TM_TIER_SESSION : TM_TIER_ALL;
	return alive(r) * LOAD_STAY <= GET(r->born) ? TM_TIER_TEMPORARY : TM_TIER_ALL;
}

enum tm_tier tm_lifetime_mostly(const struct tm_site_record *r)
{
	uint32_t frees = GET(r->shorts) + GET(r->longs);

	if (tm_lifetime_belief(r) != TM_TIER_TEMPORARY)
		return TM_TIER_ALL;
	return alive(r) <= frees ? TM_TIER_TEMPORARY : TM_TIER_ALL;
}
