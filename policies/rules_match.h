/* SPDX-License-Identifier: MIT */
/*
 * rules_match: finds the rule that decides a request. The matches on the place (module, symbol,
 * site) and on the thread are evaluated once per call site and once per thread, as sets of rules; a
 * request then only intersects two sets and compares numbers. Pure; any thread may call.
 */
#ifndef TM_POLICIES_RULES_MATCH_H
#define TM_POLICIES_RULES_MATCH_H

#include "policies/rules.h"

/*
 * Set of rules whose place, or thread, matches: bit n for rule n. Bits beyond the number of rules
 * are not read; sets are lent zeroed or were filled before.
 */
struct tm_rules_set {
	uint64_t word[TM_RULES_WORDS];
};

/* Addresses of one function that a symbol rule's pattern matches; made by rules_symbols.h. */
struct tm_rules_range {
	uintptr_t begin, end;
	uint16_t rule;
};

struct tm_rules_ranges {
	struct tm_rules_range *range; /* lent; end == 0: withdrawn after dlclose */
	uint32_t capacity;
	_Atomic uint32_t count; /* [atomic] written after the ranges below it */
};

/* What is known about a return address; slices are empty where nothing is. */
struct tm_rules_place {
	uintptr_t address;
	struct tm_str module;   /* file name without folders */
	struct tm_str build_id; /* hexadecimal */
	uint64_t offset;        /* from the module's load address */
};

struct tm_rules_request {
	size_t size;
	size_t align;
	enum tm_phase_kind phase;
};

/* Whether `part` is a prefix of at least 8 digits of a build id; both are hexadecimal. */
bool tm_rules_is_build_id(struct tm_str part, struct tm_str whole);

/*
 * Compute the sets of rules whose place, or thread, matches. `ranges` may be NULL: then no symbol
 * rule matches.
 */
void tm_rules_match_place(const struct tm_rules *rules, const struct tm_rules_ranges *ranges,
			  const struct tm_rules_place *place, struct tm_rules_set *ret_set);
void tm_rules_match_thread(const struct tm_rules *rules, struct tm_str name,
			   struct tm_rules_set *ret_set);
/* Whether the set has none of the rules added so far. */
bool tm_rules_set_is_empty(const struct tm_rules *rules, const struct tm_rules_set *set);

/*
 * Whether a rule in the set can choose a tier for some request of more than 1 KiB and up to 64 KiB.
 */
bool tm_rules_reach_medium(const struct tm_rules *rules, const struct tm_rules_set *place);

/* The same for one rule and sizes in [min, max] bytes. */
TM_INLINE bool tm_rules_reaches(const struct tm_rule *rule, uint64_t min, uint64_t max)
{
	return !rule->is_profile && rule->actions.tier != TM_TIER_ALL && rule->size_min <= max &&
	       rule->size_max >= min;
}

/*
 * Index + 1 of the first rule in both sets that matches the request; a profile's rule counts only
 * if no other matches; 0: none. Marks the rule as used.
 */
uint32_t tm_rules_match(struct tm_rules *rules, const struct tm_rules_set *place,
			const struct tm_rules_set *thread, const struct tm_rules_request *request);

/* Actions of a rule, by the number that tm_rules_match returned; not 0. */
const struct tm_rule_actions *tm_rules_actions(const struct tm_rules *rules, uint32_t number);

/* To be called after dlclose: withdraws all ranges in [begin, end). */
void tm_rules_ranges_forget(struct tm_rules_ranges *ranges, uintptr_t begin, uintptr_t end);

#endif
