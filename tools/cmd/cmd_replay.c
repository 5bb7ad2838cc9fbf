/* SPDX-License-Identifier: MIT */
/* replay: reports what the policies would do with a recorded trace. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policies/rules_match.h"

#include "tools/cmd.h"
#include "tools/policy/replay.h"
#include "tools/policy/rules_file.h"
#include "tools/text/text_fit.h"

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 100.0;
}

static double mib(uint64_t bytes)
{
	return (double)bytes / 1048576.0;
}

static double seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

static void print_tiers(const struct tm_replay *r)
{
	printf("%-12s %10s %12s %7s\n", "tier", "requests", "MiB", "bytes");
	for (int tier = TM_TIER_ALL + 1; tier < TM_TIER_COUNT; tier++)
		printf("%-12s %10llu %12.1f %6.1f%%\n", tm_tunables_tier_name((enum tm_tier)tier),
		       (unsigned long long)r->tier[tier].requests, mib(r->tier[tier].bytes),
		       percent(r->tier[tier].bytes, r->tier[0].bytes));
	printf("%-12s %10llu   at most 1 KiB each, by phase alone\n\n", "small",
	       (unsigned long long)r->small);
	printf("decided by  ");
	for (int by = TM_AUTHORITY_COUNT - 1; by > TM_AUTHORITY_NONE; by--) {
		if (r->by[by].requests)
			printf(" %s %.1f%%", tm_route_authority_name((enum tm_authority)by),
			       percent(r->by[by].bytes, r->tier[0].bytes));
	}
	printf(" of bytes\n");
}

static const char *const truths[] = {
	[TM_TRUTH_TEMPORARY] = "temporary",
	[TM_TRUTH_SESSION] = "session",
	[TM_TRUTH_PERSISTENT] = "persistent",
	[TM_TRUTH_SCRATCH] = "scratch",
};

static void print_phase(const struct tm_replay *r)
{
	if (r->serving_from_ns == UINT64_MAX)
		printf("phase        loading to the end\n");
	else
		printf("phase        serving from %.3f s, %u changes\n",
		       seconds(r->serving_from_ns), r->phase_changes);
	if (r->steps == 0)
		return;
	printf("steps        %u, the first at %.3f s; asked for as loading after it: %.1f%% of bytes\n",
	       r->steps, seconds(r->first_step_ns),
	       percent(r->loading_bytes, r->judged_serving.bytes));
	printf("right tier   %.2f%% of bytes, %.2f%% of those asked for after the first step's begin, "
	       "%.2f%% of those before it\n",
	       percent(r->right.bytes, r->judged.bytes),
	       percent(r->right_serving.bytes, r->judged_serving.bytes),
	       percent(r->right.bytes - r->right_serving.bytes,
		       r->judged.bytes - r->judged_serving.bytes));
	printf("misplaced    %.2f%% of bytes; the others that are wrong lie where they would anyway\n",
	       percent(r->misplaced_bytes, r->judged.bytes));
	printf("mistaken    ");
	for (int truth = 0; truth < TM_TRUTH_COUNT; truth++) {
		for (int tier = TM_TIER_ALL + 1; tier < TM_TIER_COUNT; tier++) {
			if (percent(r->mistaken[truth][tier], r->judged.bytes) >= .05)
				printf(" %s as %s %.1f%%", truths[truth],
				       tm_tunables_tier_name((enum tm_tier)tier),
				       percent(r->mistaken[truth][tier], r->judged.bytes));
		}
	}
	printf("\n");
}

static void print_arenas(const struct tm_replay *r)
{
	printf("arenas       dead at most %.2f MiB beside %.2f MiB live, held at most %.2f MiB",
	       mib(r->arena_dead_bytes), mib(r->arena_live_bytes), mib(r->arena_held_bytes));
	if (r->arena_over_bytes)
		printf(", %.2f MiB beyond the bound", mib(r->arena_over_bytes));
	printf("\n");
}

static void print_sites(const struct tm_replay *r, uint32_t top)
{
	if (top > r->site_count)
		top = r->site_count;
	if (top == 0)
		return;
	printf("\n%12s %11s %11s %11s %7s  %-8s %s\n", "MiB", "persistent", "session", "temporary",
	       r->steps ? "wrong" : "", "by", "site");
	for (uint32_t i = 0; i < top; i++) {
		const struct tm_replay_site *s = &r->sites[i];
		char wrong[16] = "";

		if (r->steps)
			snprintf(wrong, sizeof(wrong), "%.1f%%", percent(s->wrong_bytes, s->bytes));
		printf("%12.2f %11.2f %11.2f %11.2f %7s  %-8s ", mib(s->bytes),
		       mib(s->tier[TM_TIER_PERSISTENT].bytes), mib(s->tier[TM_TIER_SESSION].bytes),
		       mib(s->tier[TM_TIER_TEMPORARY].bytes), wrong,
		       tm_route_authority_name((enum tm_authority)s->authority));
		if (s->frame.module.len) {
			char *module = tm_text_fit_copy(s->frame.module.at, s->frame.module.len);

			printf("%s+%#llx\n", module ? module : "?",
			       (unsigned long long)s->frame.offset);
			free(module);
		} else {
			printf("unknown\n");
		}
	}
}

static void print(const struct tm_replay *replay, const struct tm_trace *trace, const char *file,
		  uint32_t top)
{
	char *shown = tm_text_fit_copy(file, strlen(file));

	printf("%s: %llu events, %.1f s\n\n", shown ? shown : "?",
	       (unsigned long long)trace->event_count, seconds(replay->end_ns));
	free(shown);
	print_tiers(replay);
	print_phase(replay);
	print_arenas(replay);
	print_sites(replay, top);
}

static bool looks_like_build_id(struct tm_str s)
{
	for (size_t i = 0; i < s.len; i++) {
		if (strchr("0123456789abcdefABCDEF", s.at[i]) == NULL)
			return false;
	}
	return s.len >= 8;
}

static const char *obstacle(const void *context, const struct tm_rule *rule)
{
	const struct tm_trace *trace = context;

	if (rule->symbol.len)
		return "symbols are unknown in a trace";
	if (rule->site.len == 0)
		return NULL;
	for (uint32_t i = 0; i < trace->frame_count; i++) {
		if (tm_rules_is_build_id(rule->site, trace->frames[i].build_id) ||
		    tm_str_equal(rule->site, trace->frames[i].module))
			return NULL;
	}
	if (!looks_like_build_id(rule->site))
		return "no request of this trace comes from that file";
	return trace->has_build_ids
		       ? "no request of this trace comes from a file with that build-id"
		       : "this trace has no build-ids, record it again";
}

static int replay_file(const char *file, const char *rules_path, uint32_t top, bool steps)
{
	struct tm_replay_options options = {.steps = steps};
	struct tm_rules_file rules = {0};
	struct tm_replay replay;
	struct tm_trace trace;
	int status = TM_EXIT_CLEAN;

	if (rules_path && tm_rules_file_open(&rules, rules_path) != 0)
		return TM_EXIT_USAGE;
	if (tm_trace_open(&trace, file) != 0) {
		tm_rules_file_close(&rules);
		return TM_EXIT_USAGE;
	}
	if (rules_path)
		options.rules = &rules.rules;
	if (tm_replay_run(&replay, &trace, &options) == 0) {
		print(&replay, &trace, file, top);
		if (rules_path)
			tm_rules_file_print_unused(&rules, obstacle, &trace);
		tm_replay_free(&replay);
	} else {
		status = TM_EXIT_TROUBLE;
	}
	tm_trace_close(&trace);
	tm_rules_file_close(&rules);
	return status;
}

int tm_cmd_replay(int argc, char **argv)
{
	const char *file = NULL, *rules = NULL;
	bool steps = false;
	uint64_t top = 0;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--top") == 0 && i + 1 < argc) {
			if (tm_parse_u64_in(tm_str_of(argv[++i]), 0, 1000000, &top) != 0)
				return tm_say_usage("'%s' is not a number of sites", argv[i]);
		} else if (strcmp(argv[i], "--rules") == 0 && i + 1 < argc) {
			rules = argv[++i];
		} else if (strcmp(argv[i], "--steps") == 0) {
			steps = true;
		} else if (strcmp(argv[i], "--top") == 0 || strcmp(argv[i], "--rules") == 0) {
			return tm_say_no_value("replay", argv[i]);
		} else if (argv[i][0] == '-' || file) {
			return tm_say_unknown("replay", argv[i]);
		} else {
			file = argv[i];
		}
	}
	if (file == NULL)
		return tm_say_needs("replay", "a trace");
	return replay_file(file, rules, (uint32_t)top, steps);
}
