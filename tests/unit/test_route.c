/* SPDX-License-Identifier: MIT */
/* route: who decides, and what is remembered of sites. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "policies/route.h"

static struct tm_route route;
static struct tm_route_thread mine;
static struct tm_rules rules;
static struct tm_rule rule_memory[8];
static uint64_t now_ms;

static uint64_t fake_clock(void *context)
{
	(void)context;
	return now_ms;
}

static void fake_where(void *context, uintptr_t address, struct tm_rules_place *place)
{
	(void)context;
	place->module = tm_str_of(address < 0x20000 ? "liba.so" : "libb.so");
	place->offset = address & 0xffff;
}

static void begin(const char *text)
{
	struct tm_rules_text t = {"r", tm_str_of(text), '\n'};

	memset(&route, 0, sizeof(route));
	memset(&mine, 0, sizeof(mine));
	tm_route_init(&route, &(struct tm_route_memory){calloc(1, TM_SITES_BYTES),
							calloc(1, TM_ROUTE_SITE_RULES_BYTES)});
	now_ms = 1000;
	route.clock = fake_clock;
	route.where = fake_where;
	if (text[0] != '\0') {
		tm_rules_init(&rules, rule_memory, 8);
		cr_assert(tm_rules_parse(&rules, &t, NULL, NULL) > 0);
		route.rules = &rules;
	}
}

static void serve(void)
{
	tm_phase_step(&route.phase);
}

static struct tm_route_decision ask(uintptr_t site, size_t size, uint32_t height)
{
	return tm_route_decide(&route, &mine,
			       &(struct tm_route_request){size, 16, 0x10000 + site, height, 0});
}

static void give(struct tm_route_decision d, size_t size)
{
	tm_route_freed(&route, &mine, (struct tm_route_death){d.site, d.epoch, size});
}

/* Blocks of a site that die `epochs` later. */
static void live(uintptr_t site, size_t size, uint32_t height, unsigned blocks, unsigned epochs)
{
	for (unsigned i = 0; i < blocks; i++) {
		struct tm_route_decision d = ask(site, size, height);

		for (unsigned e = 0; e < epochs; e++)
			atomic_fetch_add(&route.epoch.now, 1);
		give(d, size);
	}
}

Test(route, loading_is_persistent_and_serving_session_while_nothing_is_known)
{
	begin("");
	struct tm_route_decision d = ask(1, 4096, 1);
	cr_assert_eq(d.tier, TM_TIER_PERSISTENT);
	cr_assert_eq(d.authority, TM_AUTHORITY_PHASE);
	serve();
	d = ask(2, 4096, 1);
	cr_assert_eq(d.tier, TM_TIER_SESSION);
	cr_assert_eq(d.authority, TM_AUTHORITY_DEFAULT);
	cr_assert_neq(d.site, 0);
}

/* Sessions' caches often come from where the weights did: nobody knows yet that they will stay. */
Test(route, blocks_like_the_models_are_the_phases_guess)
{
	begin("");
	ask(1, 8 << 20, 1);
	serve();
	struct tm_route_decision d = ask(1, 8 << 20, 1);
	cr_assert_eq(d.tier, TM_TIER_PERSISTENT);
	cr_assert_eq(d.authority, TM_AUTHORITY_PHASE);
	give(d, 8 << 20);
	d = ask(1, 8 << 20, 1);
	cr_assert_eq(d.tier, TM_TIER_TEMPORARY, "until the first one is freed");
	cr_assert_eq(d.authority, TM_AUTHORITY_LEARNED);
}

Test(route, a_site_is_believed_after_its_first_free)
{
	begin("");
	serve();
	live(1, 4096, 1, 1, 0);
	struct tm_route_decision d = ask(1, 4096, 1);
	cr_assert_eq(d.tier, TM_TIER_TEMPORARY);
	cr_assert_eq(d.authority, TM_AUTHORITY_LEARNED);
	live(2, 4096, 1, 1, 5);
	cr_assert_eq(ask(2, 4096, 1).tier, TM_TIER_SESSION);
	cr_assert_eq(ask(2, 4096, 1).authority, TM_AUTHORITY_LEARNED);
}

Test(route, a_belief_turns_when_most_blocks_live_otherwise)
{
	begin("");
	serve();
	live(1, 4096, 1, 8, 0);
	live(1, 4096, 1, 8, 5);
	cr_assert_eq(ask(1, 4096, 1).tier, TM_TIER_TEMPORARY, "half and half turns nothing");
	live(1, 4096, 1, 16, 5);
	cr_assert_eq(ask(1, 4096, 1).tier, TM_TIER_SESSION);
}

Test(route, heights_are_told_apart_where_a_return_address_is_mixed)
{
	begin("");
	serve();
	for (int i = 0; i < 32; i++) {
		live(1, 4096, 10, 1, 0);
		live(1, 4096, 20, 1, 5);
	}
	struct tm_route_decision low = ask(1, 4096, 10), high = ask(1, 4096, 20);
	cr_assert_neq(low.site, high.site);
	cr_assert_eq(low.tier, TM_TIER_TEMPORARY);
	cr_assert_eq(high.tier, TM_TIER_SESSION);
}

Test(route, sizes_are_told_apart_where_a_height_is_mixed)
{
	begin("");
	serve();
	for (int i = 0; i < 64; i++) {
		live(1, 2048, 10, 1, 0);
		live(1, 60000, 10, 1, 5);
	}
	cr_assert_eq(ask(1, 2048, 10).tier, TM_TIER_TEMPORARY);
	cr_assert_eq(ask(1, 60000, 10).tier, TM_TIER_SESSION);
}

Test(route, one_height_is_one_record_while_nothing_is_mixed)
{
	begin("");
	serve();
	cr_assert_eq(ask(1, 4096, 10).site, ask(1, 8192, 20).site);
	cr_assert_neq(ask(1, 4096, 10).site, ask(2, 4096, 10).site);
}

Test(route, a_site_that_never_frees_for_half_a_minute_is_persistent)
{
	begin("");
	serve();
	ask(1, 4096, 1);
	atomic_fetch_add(&route.epoch.time, TM_LIFETIME_SETTLED - 1);
	cr_assert_eq(ask(1, 4096, 1).tier, TM_TIER_SESSION);
	atomic_fetch_add(&route.epoch.time, 1);
	cr_assert_eq(ask(1, 4096, 1).tier, TM_TIER_PERSISTENT);
}

Test(route, scratch_of_loading_is_temporary_once_it_never_stays)
{
	begin("");
	live(1, 4096, 1, 30, 0);
	cr_assert_eq(ask(1, 4096, 1).tier, TM_TIER_TEMPORARY);
	for (int i = 0; i < 30; i++) {
		ask(2, 4096, 1);
		live(2, 4096, 1, 1, 0);
	}
	cr_assert_eq(ask(2, 4096, 1).tier, TM_TIER_PERSISTENT, "half of its blocks stay");
}

Test(route, a_rule_goes_before_what_was_learned)
{
	begin("module=liba* size>=4K -> tier=persistent\nmodule=liba* -> huge=never\n");
	serve();
	live(1, 8192, 1, 4, 0);
	struct tm_route_decision d = ask(1, 8192, 1);
	cr_assert_eq(d.tier, TM_TIER_PERSISTENT);
	cr_assert_eq(d.authority, TM_AUTHORITY_RULE);
	cr_assert_eq(d.rule, 1);
	d = ask(1, 2048, 1);
	cr_assert_eq(d.rule, 2);
	cr_assert_eq(d.tier, TM_TIER_TEMPORARY, "a rule without a tier leaves it to others");
	cr_assert_eq(d.authority, TM_AUTHORITY_LEARNED);
	cr_assert_eq(ask(0x20000, 8192, 1).rule, 0);
}

Test(route, a_rule_added_later_reaches_known_sites)
{
	struct tm_rules_text more = {"r", tm_str_of("module=liba* size=8K -> tier=session"), '\n'};

	begin("module=zzz -> tier=persistent");
	serve();
	cr_assert_eq(ask(1, 8192, 1).rule, 0);
	cr_assert_eq(tm_rules_parse(&rules, &more, NULL, NULL), 1);
	cr_assert_eq(ask(1, 8192, 1).rule, 2);
}

static struct tm_route_decision ruled(uintptr_t site, size_t size, bool *ret_reached)
{
	return tm_route_ruled(&route, &mine,
			      &(struct tm_route_request){size, 16, 0x10000 + site, 1, 0},
			      ret_reached);
}

Test(route, rules_are_asked_about_medium_requests_alone)
{
	struct tm_rules_text profile = {"p", tm_str_of("size=2K -> tier=temporary"), '\n'};
	bool reached;

	begin("module=liba* size>=4K -> tier=persistent\nsize>=65K -> tier=session\n"
	      "module=libb* size<=1K -> tier=session\n");
	serve();
	live(1, 8192, 1, 4, 0);
	struct tm_route_decision d = ruled(1, 4096, &reached);
	cr_assert_eq(d.tier, TM_TIER_PERSISTENT);
	cr_assert_eq(d.authority, TM_AUTHORITY_RULE);
	cr_assert(reached);
	d = ruled(1, 2048, &reached);
	cr_assert_eq(d.tier, TM_TIER_ALL, "what was learned is not asked");
	cr_assert(reached, "other sizes of this site are ruled");
	d = ruled(0x20000, 2048, &reached);
	cr_assert_eq(d.tier, TM_TIER_ALL);
	cr_assert_not(reached, "no rule of its place is about such sizes");
	cr_assert_eq(tm_rules_parse(&rules, &profile, NULL, NULL), 1);
	rules.rule[atomic_load(&rules.count) - 1].is_profile = true;
	d = ruled(0x20001, 2048, &reached);
	cr_assert_eq(d.authority, TM_AUTHORITY_PROFILE);
	cr_assert_not(tm_rules_reaches(&rules.rule[atomic_load(&rules.count) - 1], 1025, 65536));
}

Test(route, thread_rules_follow_the_name)
{
	begin("thread=worker* -> tier=temporary");
	serve();
	cr_assert_eq(ask(1, 8192, 1).rule, 0);
	tm_route_thread_begin(&mine, "worker-7");
	cr_assert_eq(ask(1, 8192, 1).rule, 1);
}

Test(route, what_lay_in_an_unloaded_library_is_forgotten)
{
	begin("");
	serve();
	live(1, 4096, 1, 4, 0);
	tm_route_forget(&route, 0x10000, 0x20000);
	for (int i = 0; i < 600; i++)
		ask(0x20000, 4096, 1);
	cr_assert_eq(ask(1, 4096, 1).tier, TM_TIER_SESSION);
}

Test(route, steps_that_are_told_are_epochs)
{
	begin("");
	struct tm_route_decision d = ask(1, 4096, 1);
	cr_assert_eq(d.tier, TM_TIER_PERSISTENT);
	tm_route_step(&route);
	d = ask(2, 4096, 1);
	cr_assert_eq(d.tier, TM_TIER_SESSION, "a step is serving");
	now_ms += 60000;
	for (int i = 0; i < 600; i++)
		ask(3, 4096, 1);
	give(d, 4096);
	cr_assert_eq(ask(2, 4096, 1).tier, TM_TIER_TEMPORARY, "no step went by, only time");
	d = ask(4, 4096, 1);
	tm_route_step(&route);
	tm_route_step(&route);
	give(d, 4096);
	cr_assert_eq(ask(4, 4096, 1).tier, TM_TIER_SESSION);
}

Test(route, a_full_table_costs_knowledge_not_service)
{
	begin("");
	serve();
	atomic_store(&route.sites.used, TM_SITES_LIMIT);
	struct tm_route_decision d = ask(1, 4096, 1);
	cr_assert_eq(d.site, 0);
	cr_assert_eq(d.tier, TM_TIER_SESSION);
	give(d, 4096);
	cr_assert_eq(ask(1, 4096, 1).tier, TM_TIER_SESSION);
}

/* Whatever comes, a decision names a tier and a record that the caller may give back. */
Test(route, any_stream_is_served)
{
	struct held {
		struct tm_route_decision d;
		size_t size;
	} held[256] = {0};
	uint64_t x = 1;

	begin("size=3000..5000 -> tier=temporary\n");
	for (int i = 0; i < 300000; i++) {
		x = x * UINT64_C(6364136223846793005) + 1442695040888963407u;
		struct held *h = &held[x >> 56];

		if (h->size)
			give(h->d, h->size);
		h->size = 1025 + (size_t)(x >> 33) % (i % 100 == 0 ? 8 << 20 : 60000);
		h->d = ask((uintptr_t)(x >> 20) % 3000 * 16, h->size, (uint32_t)(x >> 40) % 500);
		now_ms += i % 7 == 0;
		cr_assert(h->d.tier >= TM_TIER_PERSISTENT && h->d.tier <= TM_TIER_TEMPORARY);
		cr_assert(h->d.authority > TM_AUTHORITY_NONE &&
			  h->d.authority < TM_AUTHORITY_COUNT);
		cr_assert(h->d.epoch <= TM_LIFETIME_EPOCH_MASK);
		cr_assert(h->d.site == 0 || tm_sites_is_live(&route.sites.record[h->d.site]));
		if (h->size >= 3000 && h->size <= 5000 && h->d.site)
			cr_assert_eq(h->d.tier, TM_TIER_TEMPORARY);
	}
}

Test(route, a_settled_decision_reads_no_record_and_ends_with_its_belief)
{
	struct tm_site_record *record;
	struct tm_route_decision d;

	begin("");
	serve();
	live(1, 4096, 1, 200, 0);
	d = ask(1, 4096, 1);
	cr_assert_eq(d.tier, TM_TIER_TEMPORARY);
	record = &route.sites.record[d.site];
	/* what it believes changes behind the cache's back: nobody has looked */
	atomic_store(&record->belief, TM_TIER_SESSION);
	cr_assert_eq(ask(1, 4096, 1).tier, TM_TIER_TEMPORARY);
	atomic_store(&record->belief, TM_TIER_TEMPORARY);
	/* and as it does by frees: at once */
	while (tm_lifetime_belief(record) == TM_TIER_TEMPORARY)
		tm_route_freed_slow(&route, &mine,
				    (struct tm_route_death){d.site, (uint8_t)(d.epoch - 5), 4096});
	cr_assert_eq(ask(1, 4096, 1).tier, TM_TIER_SESSION);
}

Test(route, large_blocks_of_settled_sites_are_counted_all_the_same)
{
	begin("");
	serve();
	uint64_t before = atomic_load(&route.phase.large_bytes);
	struct tm_route_decision d[64];

	live(1, 1 << 20, 1, 200, 0);
	for (int i = 0; i < 64; i++)
		d[i] = ask(1, 1 << 20, 1);
	cr_assert_neq(mine.local.large_bytes, 0, "not one by one");
	cr_assert_eq(atomic_load(&route.phase.large_bytes) + mine.local.large_bytes - before,
		     UINT64_C(64) << 20);
	for (int i = 0; i < 64; i++)
		give(d[i], 1 << 20);
}

Test(route, authorities_have_names)
{
	for (int a = TM_AUTHORITY_NONE + 1; a < TM_AUTHORITY_COUNT; a++)
		cr_assert_eq(tm_route_authority_of(
				     tm_str_of(tm_route_authority_name((enum tm_authority)a))),
			     (enum tm_authority)a);
	cr_assert_eq(tm_route_authority_of(tm_str_of("nobody")), TM_AUTHORITY_NONE);
}
