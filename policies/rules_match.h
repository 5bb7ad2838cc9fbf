/* SPDX-License-Identifier: MIT */
/*
 * rules_match: which rule decides. Matches of the place (module, symbol, site) and of the thread are
 * worked out once, for a call site and for a thread, as sets of rules; a request then needs only the
 * sets' intersection and the numbers. Pure; any thread.
 */
#ifndef TM_POLICIES_RULES_MATCH_H
#define TM_POLICIES_RULES_MATCH_H

#include "policies/rules.h"

/*
 * Rules whose place, or thread, is right: bit n for rule n. What lies behind the rules there are is not
 * looked at; sets are lent zeroed, or filled before.
 */
struct tm_rules_set {
	uint64_t word[TM_RULES_WORDS];
};

/* Addresses of one function, for the symbol rules that its name matches; rules_symbols.h makes them. */
struct tm_rules_range {
	uintptr_t begin, end;
	uint16_t rule;
};

struct tm_rules_ranges {
	struct tm_rules_range *range; /* lent; end == 0: withdrawn */
	uint32_t capacity;
	_Atomic uint32_t count; /* [atomic] published last */
};

/* What is known of a return address; empty slices where nothing is. */
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

/* Whether `part` are the first digits, 8 or more, of a build id; both hexadecimal. */
bool tm_rules_is_build_id(struct tm_str part, struct tm_str whole);

/* `ranges` may be NULL: then no symbol rule matches. */
void tm_rules_match_place(const struct tm_rules *rules, const struct tm_rules_ranges *ranges,
			  const struct tm_rules_place *place, struct tm_rules_set *ret_set);
void tm_rules_match_thread(const struct tm_rules *rules, struct tm_str name,
			   struct tm_rules_set *ret_set);
bool tm_rules_set_is_empty(const struct tm_rules *rules, const struct tm_rules_set *set);

/* Whether a rule of the set chooses a tier for some request of more than 1 KiB and up to 64 KiB. */
bool tm_rules_reach_medium(const struct tm_rules *rules, const struct tm_rules_set *place);

/* The same of one rule, and of sizes in [min, max]. */
TM_INLINE bool tm_rules_reaches(const struct tm_rule *rule, uint64_t min, uint64_t max)
{
	return !rule->is_profile && rule->actions.tier != TM_TIER_ALL && rule->size_min <= max &&
	       rule->size_max >= min;
}

/*
 * Number of the first rule in both sets that takes the request, + 1; one of a profile only if no other
 * does; 0: none. Marks it as used.
 */
uint32_t tm_rules_match(struct tm_rules *rules, const struct tm_rules_set *place,
			const struct tm_rules_set *thread, const struct tm_rules_request *request);

/* Of tm_rules_match's number; not 0. */
const struct tm_rule_actions *tm_rules_actions(const struct tm_rules *rules, uint32_t number);

/* After dlclose: no rule matches in [begin, end) any more. */
void tm_rules_ranges_forget(struct tm_rules_ranges *ranges, uintptr_t begin, uintptr_t end);

#endif
