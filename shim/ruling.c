/* SPDX-License-Identifier: MIT */
#include "shim/ruling.h"

#include <errno.h>
#include <string.h>

#include "shim/alloc_debug.h"
#include "shim/base/bits.h"
#include "shim/boot.h"
#include "shim/heap/meta.h"
#include "shim/heap/size_class.h"
#include "shim/heap/tier.h"
#include "shim/os/mem.h"
#include "shim/os/msg.h"
#include "shim/os/proc.h"
#include "shim/places.h"
#include "shim/pooling.h"
#include "shim/routing.h"
#include "shim/thread.h"

/* Number of rules that tiermalloc_set_tier may add to those of the environment. */
#define ADDED_RULES_MAX 64u
#define PROFILE_RULES_MAX 512u
#define RULES_FILE_MAX ((size_t)1 << 20)

static size_t page_round(size_t bytes)
{
	return tm_bits_align_up(bytes, TM_PAGE_BYTES);
}

static void tell(void *context, const struct tm_rules_problem *problem)
{
	char line[512];

	(void)context;
	tm_rules_describe(line, sizeof(line), problem);
	tm_msg(TM_MSG_WARN, "%s", line);
}

static int begin_rules(uint32_t count)
{
	struct tm_rule *memory;
	void *sets;

	if (tm_routing.rules.rule != NULL)
		return 0;
	memory = tm_mem_map(page_round(count * sizeof(*memory)));
	sets = tm_mem_map(page_round(TM_ROUTE_SITE_RULES_BYTES));
	if (memory == NULL || sets == NULL)
		return -ENOMEM;
	tm_rules_init(&tm_routing.rules, memory, count);
	tm_routing.route.site_rules = sets;
	tm_places_serve(&tm_routing.route);
	/* release: a request that sees the count sees the rules */
	__atomic_store_n(&tm_routing.route.rules, &tm_routing.rules, __ATOMIC_RELEASE);
	return 0;
}

/* Reads the file into a mapping that is never freed, since patterns are slices of the text. */
static struct tm_str read_file(const char *variable, const char *path)
{
	char *text = tm_mem_map(RULES_FILE_MAX);
	long n = text == NULL ? -ENOMEM : tm_proc_read(path, text, RULES_FILE_MAX);

	if (n < 0) {
		tm_msg(TM_MSG_WARN, "%s: cannot read '%s' (%s, error %d)", variable, path,
		       tm_msg_reason((int)-n), (int)-n);
		return (struct tm_str){NULL, 0};
	}
	if (n == RULES_FILE_MAX - 1) {
		tm_msg(TM_MSG_WARN, "%s: '%s' is longer than 1 MiB, the rest is not read", variable,
		       path);
		while (n > 0 && text[n - 1] != '\n')
			n--;
	}
	return (struct tm_str){text, (size_t)n};
}

static void note_guard(const struct tm_rule *rule)
{
	if (rule->actions.guard != TM_RULE_GUARD_UNSET)
		atomic_fetch_or_explicit(&tm_routing.guards, (uint8_t)(1u << rule->actions.guard),
					 memory_order_relaxed);
}

/* Requests of 1 to 64 KiB consult the rules once there is a rule for them. */
static void note_reach(const struct tm_rule *rule)
{
	uint8_t bits = 0;

	if (tm_rules_reaches(rule, TM_RULES_MEDIUM_MIN, TM_RULES_MEDIUM_MAX))
		bits |= TM_TIER_RULED;
	if (tm_rules_reaches(rule, TM_SOLO_ABOVE + 1, TM_SLOT_MAX))
		bits |= TM_TIER_RULED_SOLO;
	if (bits != 0 && !tm_tier_observe)
		atomic_fetch_or_explicit(&tm_tier_ruled, bits, memory_order_relaxed);
}

static void read_rules(const char *value)
{
	struct tm_rules_text text = {"TIERMALLOC_RULES", tm_str_of(value), TM_RULES_INLINE};
	uint32_t count;

	if (!tm_rules_is_inline(text.text)) {
		text = (struct tm_rules_text){value, read_file("TIERMALLOC_RULES", value), '\n'};
		if (text.text.len == 0)
			return;
	}
	/* twice, to leave as many for a profile */
	count = tm_rules_count_lines(text.text, text.separator) + ADDED_RULES_MAX +
		PROFILE_RULES_MAX;
	if (begin_rules((uint32_t)tm_bits_min(count, TM_RULES_MAX)) != 0) {
		tm_msg(TM_MSG_WARN, "TIERMALLOC_RULES: no memory");
		return;
	}
	tm_rules_parse(&tm_routing.rules, &text, tell, NULL);
	for (uint32_t i = 0; i < atomic_load(&tm_routing.rules.count); i++) {
		note_guard(&tm_routing.rules.rule[i]);
		note_reach(&tm_routing.rules.rule[i]);
		tm_pooling_check(text.file, &tm_routing.rules.rule[i]);
	}
}

/* The profile, written by 'tiermalloc tune' from an earlier run: rules of the lowest precedence. */
static void read_profile(const char *path)
{
	struct tm_rules_text text = {path, read_file("TIERMALLOC_PROFILE", path), '\n'};
	uint32_t first, capacity;

	if (text.text.len == 0)
		return;
	if (begin_rules(PROFILE_RULES_MAX + ADDED_RULES_MAX) != 0) {
		tm_msg(TM_MSG_WARN, "TIERMALLOC_PROFILE: no memory");
		return;
	}
	first = atomic_load_explicit(&tm_routing.rules.count, memory_order_relaxed);
	/* leaves room for the rules added at run time */
	capacity = tm_routing.rules.capacity;
	tm_routing.rules.capacity = (uint32_t)tm_bits_min(first + PROFILE_RULES_MAX, capacity);
	tm_rules_parse(&tm_routing.rules, &text, tell, NULL);
	tm_routing.rules.capacity = capacity;
	for (uint32_t i = first; i < atomic_load(&tm_routing.rules.count); i++)
		tm_routing.rules.rule[i].is_profile = true;
}

TM_AT_START_CODE void tm_ruling_init(void)
{
	const char *rules = tm_root.options.rules, *profile = tm_root.options.profile;

	if (rules != NULL && rules[0] != '\0')
		read_rules(rules);
	if (profile != NULL && profile[0] != '\0')
		read_profile(profile);
}

int tm_ruling_add(const char *line)
{
	struct tm_rules_text text = {"tiermalloc_set_tier", tm_str_of(line), TM_RULES_INLINE};
	size_t len = text.text.len;
	struct tm_rule rule;
	struct tm_rules alone;
	struct tm_thread_heap held;
	char *copy;
	int rc;

	if (len == 0 || len > TM_RULES_LINE_MAX)
		return -EINVAL;
	tm_rules_init(&alone, &rule, 1);
	if (tm_rules_parse(&alone, &text, NULL, NULL) == 0)
		return -EINVAL;
	if (!tm_alloc_debug_can((enum tm_rule_guard)rule.actions.guard))
		return -EOPNOTSUPP;
	copy = tm_meta_alloc(len + 1, 1);
	if (copy == NULL)
		return -ENOMEM;
	memcpy(copy, line, len);
	text.text.at = copy;
	tm_lock_acquire(&tm_routing.lock);
	rc = begin_rules(ADDED_RULES_MAX);
	if (rc == 0 && atomic_load_explicit(&tm_routing.rules.count, memory_order_relaxed) >=
			       tm_routing.rules.capacity)
		rc = -ENOSPC;
	if (rc == 0 && tm_rules_parse(&tm_routing.rules, &text, NULL, NULL) == 0)
		rc = -EINVAL;
	if (rc == 0) {
		note_guard(&rule);
		note_reach(&rule);
		tm_route_rules_added(&tm_routing.route);
		tm_routing_ask_anew();
	}
	tm_lock_release(&tm_routing.lock);
	held = tm_thread_enter();
	if (held.hold != TM_THREAD_NONE)
		tm_routing_ask_anew_here(held.heap);
	tm_thread_leave(held);
	return rc;
}
