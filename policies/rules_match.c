/* SPDX-License-Identifier: MIT */
/* rules_match: see rules_match.h. */
#include "policies/rules_match.h"

static uint32_t count_of(const struct tm_rules *rules)
{
	return atomic_load_explicit(&rules->count, memory_order_acquire);
}

static uint32_t words_of(uint32_t count)
{
	return (count + 63) / 64;
}

/*
 * Writes only where a bit is set: the sets of sites without rules stay untouched zero pages, which
 * are not resident.
 */
static void clear(struct tm_rules_set *set, uint32_t count)
{
	for (uint32_t i = 0; i < words_of(count); i++)
		if (set->word[i] != 0)
			set->word[i] = 0;
}

static void put(struct tm_rules_set *set, uint32_t rule)
{
	set->word[rule / 64] |= UINT64_C(1) << (rule % 64);
}

bool tm_rules_set_is_empty(const struct tm_rules *rules, const struct tm_rules_set *set)
{
	uint32_t words = words_of(count_of(rules));
	uint64_t any = 0;

	for (uint32_t i = 0; i < words; i++)
		any |= set->word[i];
	return any == 0;
}

static bool in_ranges(const struct tm_rules_ranges *ranges, uintptr_t address, uint32_t rule)
{
	uint32_t count = ranges ? atomic_load_explicit(&ranges->count, memory_order_acquire) : 0;

	/* A return address may lie just behind the function if the call is its last instruction. */
	for (uint32_t i = 0; i < count; i++) {
		const struct tm_rules_range *r = &ranges->range[i];

		if (r->rule == rule && address > r->begin && address <= r->end)
			return true;
	}
	return false;
}

bool tm_rules_is_build_id(struct tm_str part, struct tm_str whole)
{
	if (part.len < 8 || part.len > whole.len)
		return false;
	for (size_t i = 0; i < part.len; i++) {
		char a = part.at[i];

		if (a >= 'A' && a <= 'F')
			a = (char)(a - 'A' + 'a');
		if (a != whole.at[i])
			return false;
	}
	return true;
}

static bool is_site(const struct tm_rule *rule, const struct tm_rules_place *place)
{
	return rule->site_offset == place->offset &&
	       (tm_rules_is_build_id(rule->site, place->build_id) ||
		tm_str_equal(rule->site, place->module));
}

void tm_rules_match_place(const struct tm_rules *rules, const struct tm_rules_ranges *ranges,
			  const struct tm_rules_place *place, struct tm_rules_set *ret_set)
{
	uint32_t count = count_of(rules);

	clear(ret_set, count);
	for (uint32_t i = 0; i < count; i++) {
		const struct tm_rule *rule = &rules->rule[i];

		if (rule->module.len && !tm_parse_glob(rule->module, place->module))
			continue;
		if (rule->site.len && !is_site(rule, place))
			continue;
		if (rule->symbol.len && !in_ranges(ranges, place->address, i))
			continue;
		put(ret_set, i);
	}
}

void tm_rules_match_thread(const struct tm_rules *rules, struct tm_str name,
			   struct tm_rules_set *ret_set)
{
	uint32_t count = count_of(rules);

	clear(ret_set, count);
	for (uint32_t i = 0; i < count; i++) {
		const struct tm_rule *rule = &rules->rule[i];

		if (rule->thread.len == 0 || tm_parse_glob(rule->thread, name))
			put(ret_set, i);
	}
}

static bool takes(const struct tm_rule *rule, const struct tm_rules_request *request)
{
	return request->size >= rule->size_min && request->size <= rule->size_max &&
	       request->align >= rule->align_min && request->align <= rule->align_max &&
	       (rule->phase == TM_PHASE_ANY || rule->phase == request->phase);
}

static void note_used(struct tm_rule *rule)
{
	if (atomic_load_explicit(&rule->used, memory_order_relaxed) == 0)
		atomic_store_explicit(&rule->used, 1, memory_order_relaxed);
}

bool tm_rules_reach_medium(const struct tm_rules *rules, const struct tm_rules_set *place)
{
	uint32_t words = words_of(count_of(rules));

	for (uint32_t w = 0; w < words; w++)
		for (uint64_t left = place->word[w]; left; left &= left - 1)
			if (tm_rules_reaches(&rules->rule[w * 64 + (uint32_t)__builtin_ctzll(left)],
					     TM_RULES_MEDIUM_MIN, TM_RULES_MEDIUM_MAX))
				return true;
	return false;
}

uint32_t tm_rules_match(struct tm_rules *rules, const struct tm_rules_set *place,
			const struct tm_rules_set *thread, const struct tm_rules_request *request)
{
	uint32_t words = words_of(count_of(rules));
	uint32_t profiled = 0;

	for (uint32_t w = 0; w < words; w++) {
		for (uint64_t left = place->word[w] & thread->word[w]; left; left &= left - 1) {
			uint32_t i = w * 64 + (uint32_t)__builtin_ctzll(left);
			struct tm_rule *rule = &rules->rule[i];

			if (!takes(rule, request))
				continue;
			if (rule->is_profile) {
				profiled = profiled ? profiled : i + 1;
				continue;
			}
			note_used(rule);
			return i + 1;
		}
	}
	if (profiled != 0)
		note_used(&rules->rule[profiled - 1]);
	return profiled;
}

const struct tm_rule_actions *tm_rules_actions(const struct tm_rules *rules, uint32_t number)
{
	return &rules->rule[number - 1].actions;
}

void tm_rules_ranges_forget(struct tm_rules_ranges *ranges, uintptr_t begin, uintptr_t end)
{
	uint32_t count = atomic_load_explicit(&ranges->count, memory_order_acquire);

	for (uint32_t i = 0; i < count; i++) {
		struct tm_rules_range *r = &ranges->range[i];

		if (r->begin >= begin && r->end <= end)
			r->end = 0;
	}
}
