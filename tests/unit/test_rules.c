/* SPDX-License-Identifier: MIT */
/* rules: text to table, table to decision. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policies/rules.h"
#include "policies/rules_match.h"

#define ROOM 64

static struct tm_rule memory[ROOM];
static struct tm_rules rules;
static char said[4096];

static void tell(void *context, const struct tm_rules_problem *problem)
{
	char line[512];

	(void)context;
	tm_rules_describe(line, sizeof(line), problem);
	snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s\n", line);
}

static uint32_t parse_as(const char *text, char separator)
{
	struct tm_rules_text t = {"r", tm_str_of(text), separator};

	said[0] = '\0';
	tm_rules_init(&rules, memory, ROOM);
	return tm_rules_parse(&rules, &t, tell, NULL);
}

static uint32_t parse(const char *text)
{
	return parse_as(text, '\n');
}

static void wrong(const char *line, const char *complaint)
{
	char want[512];

	cr_assert_eq(parse(line), 0, "'%s' was taken", line);
	snprintf(want, sizeof(want), "r:1: %s\n", complaint);
	cr_assert_str_eq(said, want);
}

static uint32_t ask_at(const char *module, const char *thread, size_t size, size_t align,
		       enum tm_phase_kind phase)
{
	struct tm_rules_place place = {.address = 0x1000,
				       .module = tm_str_of(module),
				       .build_id = tm_str_of("0123456789abcdef"),
				       .offset = 0x42};
	struct tm_rules_set by_place = {0}, by_thread = {0};

	tm_rules_match_place(&rules, NULL, &place, &by_place);
	tm_rules_match_thread(&rules, tm_str_of(thread), &by_thread);
	return tm_rules_match(&rules, &by_place, &by_thread,
			      &(struct tm_rules_request){size, align, phase});
}

static uint32_t ask(const char *module, size_t size)
{
	return ask_at(module, "main", size, 16, TM_PHASE_SERVE);
}

Test(rules, the_examples_of_the_manual_are_taken)
{
	cr_assert_eq(
		parse("module=libggml-base.so* size>=1M        -> tier=persistent huge=always\n"
		      "symbol=PrefixCache::insert* phase=serve -> tier=session\n"
		      "size=768K align>=64 thread=worker*      -> tier=temporary pool=64 keep=32M\n"),
		3, "%s", said);
	cr_assert_str_eq(said, "");
	cr_assert_eq(memory[0].actions.tier, TM_TIER_PERSISTENT);
	cr_assert_eq(memory[0].actions.huge, TM_RULE_HUGE_ALWAYS);
	cr_assert_eq(memory[1].phase, TM_PHASE_SERVE);
	cr_assert(rules.by_symbol && rules.by_thread && rules.by_place);
	cr_assert_eq(memory[2].actions.pool, 64);
	cr_assert_eq(memory[2].actions.keep_bytes, 32 << 20);
	cr_assert_eq(memory[2].size_min, 768 << 10);
	cr_assert_eq(memory[2].size_max, 768 << 10);
	cr_assert_eq(memory[2].align_min, 64);
}

Test(rules, every_action_has_its_field)
{
	cr_assert_eq(
		parse("size=1 -> node=3 guard=sample\nsize=2 -> node=interleave guard=all huge=never\n"
		      "size=3 -> node=local guard=off huge=auto keep=0\n"),
		3, "%s", said);
	cr_assert_eq(memory[0].actions.node, TM_RULE_NODE_NUMBER);
	cr_assert_eq(memory[0].actions.node_number, 3);
	cr_assert_eq(memory[0].actions.guard, TM_RULE_GUARD_SAMPLE);
	cr_assert_eq(memory[0].actions.tier, TM_TIER_ALL);
	cr_assert_eq(memory[1].actions.node, TM_RULE_NODE_INTERLEAVE);
	cr_assert_eq(memory[1].actions.huge, TM_RULE_HUGE_NEVER);
	cr_assert_eq(memory[2].actions.node, TM_RULE_NODE_LOCAL);
	cr_assert(memory[2].actions.keep_set && memory[2].actions.keep_bytes == 0);
	cr_assert_not(memory[0].actions.keep_set);
}

Test(rules, comments_and_blank_lines_cost_nothing_but_count)
{
	cr_assert_eq(parse("# all\n\n \t\r\nsize=1K -> tier=session # ours\n"), 1, "%s", said);
	cr_assert_eq(memory[0].line, 4);
	cr_assert_str_eq(said, "");
}

Test(rules, a_variable_separates_by_semicolon_or_newline)
{
	cr_assert(tm_rules_is_inline(tm_str_of("size=1K -> tier=session")));
	cr_assert_not(tm_rules_is_inline(tm_str_of("/etc/rules")));
	cr_assert_not(tm_rules_is_inline(tm_str_of("")));
	cr_assert_eq(parse_as("size=1K->tier=session", TM_RULES_INLINE), 0);
	cr_assert_eq(
		parse_as(
			"size=1K -> tier=session; size=2K -> tier=temporary\nsize=3K -> tier=session",
			TM_RULES_INLINE),
		3, "%s", said);
	cr_assert_eq(memory[2].line, 3);
}

Test(rules, a_mistake_costs_its_own_line)
{
	cr_assert_eq(
		parse("size=1K -> tier=session\nsize=2K -> teir=session\nsize=3K -> tier=session\n"),
		2);
	cr_assert_str_eq(
		said,
		"r:2: unknown action, use tier, pool, keep, huge, node or guard, not 'teir'\n");
}

Test(rules, mistakes_name_the_problem_and_the_subject)
{
	wrong("size=1K", "no -> in 'size=1K'");
	wrong("size=1K tier=session", "no -> in 'size=1K tier=session'");
	wrong("size=1K ->", "no action behind -> in 'size=1K ->'");
	wrong("size=1K -> tier=session -> keep=1K",
	      "a second arrow in 'size=1K -> tier=session -> keep=1K'");
	wrong("size -> tier=session", "not KEY=VALUE: 'size'");
	wrong("size>1K -> tier=session", "use =, >= or <= in 'size>1K'");
	wrong("size= -> tier=session", "no value in 'size='");
	wrong("size=many -> tier=session", "not a size such as 768K: 'size=many'");
	wrong("size=2K..1K -> tier=session", "the range is empty: 'size=2K..1K'");
	wrong("size>=2K size<=1K -> tier=session", "no number is left after 'size<=1K'");
	wrong("colour=red -> tier=session",
	      "unknown match, use module, symbol, thread, site, size, align or phase, not 'colour'");
	wrong("module>=x -> tier=session", "only = is allowed for 'module'");
	wrong("module=x module=y -> tier=session", "given twice: 'module'");
	wrong("phase=idle -> tier=session", "not load or serve: 'phase=idle'");
	wrong("site=abc -> tier=session", "not BUILDID+OFFSET: 'site=abc'");
	wrong("site=abc+zz -> tier=session", "not BUILDID+OFFSET: 'site=abc+zz'");
	wrong("size=1K -> tier=eternal", "not persistent, session or temporary: 'tier=eternal'");
	wrong("size=1K -> tier=session tier=session", "given twice: 'tier'");
	wrong("size=1K -> huge=2M", "not auto, always or never: 'huge=2M'");
	wrong("size=1K -> guard=on", "not off, sample or all: 'guard=on'");
	wrong("size=1K -> node=far", "not a node's number, interleave or local: 'node=far'");
	wrong("size=1K -> pool=0", "not a number of blocks: 'pool=0'");
	wrong("size=1K -> keep=lots", "not a size such as 768K: 'keep=lots'");
	wrong("size=1K -> tier>=session", "only = is allowed for 'tier'");
	wrong("size=1K->tier=session", "no blanks around -> in 'size=1K->tier=session'");
	wrong("size>=1K ->tier=session", "no blanks around -> in '->tier=session'");
	wrong("module=a\x01 -> tier=session",
	      "a character that is no text in 'module=a\\x01 -> tier=session'");
	wrong("\xff\xe9=x -> tier=session",
	      "unknown match, use module, symbol, thread, site, size, "
	      "align or phase, not '\\xff\\xe9'");
}

Test(rules, a_complaint_is_one_line_whatever_the_subject)
{
	char text[5000];

	memset(text, 'x', sizeof(text));
	memcpy(text, "a\x01\x7f", 3);
	text[sizeof(text) - 1] = '\0';
	cr_assert_eq(parse(text), 0);
	cr_assert(strlen(said) < 300);
	cr_assert_eq(strchr(said, '\n'), said + strlen(said) - 1);
	cr_assert_not(strchr(said, '\x7f'));
}

Test(rules, what_does_not_fit_is_told_of)
{
	struct tm_rules_text t = {
		"r", tm_str_of("size=1 -> keep=1\nsize=2 -> keep=1\nsize=3 -> keep=1\n"), '\n'};

	said[0] = '\0';
	tm_rules_init(&rules, memory, 1);
	cr_assert_eq(tm_rules_parse(&rules, &t, tell, NULL), 1);
	cr_assert_str_eq(said,
			 "r:2: one rule too many, from here on none applies: 'size=2 -> keep=1'\n");
}

Test(rules, the_first_rule_whose_every_match_holds_decides)
{
	parse("module=liba* size>=1M -> tier=persistent\nmodule=liba* -> tier=session\nsize>=2M -> tier=temporary\n");
	cr_assert_eq(ask("liba.so.1", 1 << 20), 1);
	cr_assert_eq(ask("liba.so.1", (1 << 20) - 1), 2);
	cr_assert_eq(ask("libb.so", 2 << 20), 3);
	cr_assert_eq(ask("libb.so", 1 << 20), 0);
	cr_assert_eq(tm_rules_actions(&rules, 3)->tier, TM_TIER_TEMPORARY);
}

Test(rules, sizes_and_alignments_are_inclusive_ranges)
{
	parse("size=2K..4K align=64..128 -> tier=session\nsize<=1K -> tier=temporary\n");
	cr_assert_eq(ask_at("m", "t", 2048, 64, TM_PHASE_LOAD), 1);
	cr_assert_eq(ask_at("m", "t", 4096, 128, TM_PHASE_LOAD), 1);
	cr_assert_eq(ask_at("m", "t", 4097, 128, TM_PHASE_LOAD), 0);
	cr_assert_eq(ask_at("m", "t", 4096, 256, TM_PHASE_LOAD), 0);
	cr_assert_eq(ask_at("m", "t", 1024, 16, TM_PHASE_LOAD), 2);
	cr_assert_eq(ask_at("m", "t", 1025, 16, TM_PHASE_LOAD), 0);
}

Test(rules, phase_and_thread_are_matched)
{
	parse("phase=load thread=load* -> tier=persistent\nphase=serve -> tier=session\n");
	cr_assert_eq(ask_at("m", "loader", 1, 16, TM_PHASE_LOAD), 1);
	cr_assert_eq(ask_at("m", "main", 1, 16, TM_PHASE_LOAD), 0);
	cr_assert_eq(ask_at("m", "loader", 1, 16, TM_PHASE_SERVE), 2);
}

Test(rules, a_site_is_a_build_id_or_a_file_and_an_offset)
{
	parse("site=01234567+0x42 -> tier=session\nsite=libx.so+42 -> tier=temporary\nsite=0123+42 -> tier=session\n");
	cr_assert_eq(ask("libx.so", 1), 1);
	parse("site=libx.so+42 -> tier=temporary\nsite=libx.so+43 -> tier=session");
	cr_assert_eq(ask("libx.so", 1), 1);
	cr_assert_eq(ask("liby.so", 1), 0);
	parse("site=0123+42 -> tier=session");
	cr_assert_eq(ask("libx.so", 1), 0, "4 digits of a build id are too few");
	parse("site=0123456789ABCDEF+42 -> tier=session");
	cr_assert_eq(ask("libx.so", 1), 1);
}

Test(rules, a_symbol_matches_by_the_ranges_of_its_functions)
{
	struct tm_rules_range range[2] = {{0x1000, 0x1100, 0}, {0x2000, 0x2100, 0}};
	struct tm_rules_ranges ranges = {.range = range, .capacity = 2, .count = 2};
	struct tm_rules_place place = {.address = 0x1000};
	struct tm_rules_set set = {0};

	parse("symbol=f -> tier=session");
	tm_rules_match_place(&rules, &ranges, &place, &set);
	cr_assert(tm_rules_set_is_empty(&rules, &set), "a return address is behind the call");
	place.address = 0x1100;
	tm_rules_match_place(&rules, &ranges, &place, &set);
	cr_assert_not(tm_rules_set_is_empty(&rules, &set), "a call may end a function");
	tm_rules_ranges_forget(&ranges, 0x1000, 0x1800);
	tm_rules_match_place(&rules, &ranges, &place, &set);
	cr_assert(tm_rules_set_is_empty(&rules, &set));
	place.address = 0x2050;
	tm_rules_match_place(&rules, &ranges, &place, &set);
	cr_assert_not(tm_rules_set_is_empty(&rules, &set));
}

Test(rules, a_profile_decides_only_where_nobody_else_does)
{
	parse("size=1M -> tier=temporary\nsize>=1M -> tier=session\nsize>=64K -> tier=persistent\n");
	memory[0].is_profile = true;
	memory[2].is_profile = true;
	cr_assert_eq(ask_at("a", "t", 1 << 20, 16, TM_PHASE_LOAD), 2);
	cr_assert_eq(ask_at("a", "t", 1 << 17, 16, TM_PHASE_LOAD), 3);
	cr_assert_eq(memory[0].used, 0);
	cr_assert_eq(memory[2].used, 1);
	cr_assert_eq(ask_at("a", "t", 1 << 10, 16, TM_PHASE_LOAD), 0);
}

Test(rules, those_that_decided_are_known)
{
	parse("size=1 -> keep=1\nsize=2 -> keep=1\n");
	ask("m", 2);
	cr_assert_eq(atomic_load(&memory[0].used), 0);
	cr_assert_eq(atomic_load(&memory[1].used), 1);
}

Test(rules, appending_raises_the_generation)
{
	struct tm_rules_text t = {"r", tm_str_of("size=9 -> tier=session"), '\n'};

	parse("size=1 -> keep=1");
	cr_assert_eq(atomic_load(&rules.generation), 1);
	cr_assert_eq(tm_rules_parse(&rules, &t, tell, NULL), 1);
	cr_assert_eq(atomic_load(&rules.generation), 2);
	cr_assert_eq(ask("m", 9), 2);
}

Test(rules, a_file_that_is_none_is_told_of_in_a_few_lines)
{
	static char text[64 * 1000];
	size_t at = 0;

	for (int i = 0; i < 1000; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "nonsense\n");
	snprintf(text + at, sizeof(text) - at, "size=1K -> tier=session\n");
	cr_assert_eq(parse(text), 1);
	cr_assert(strstr(said, "r:10: no -> in 'nonsense'\n") != NULL, "%s", said);
	cr_assert(strstr(said, "r:11:") == NULL, "%s", said);
	cr_assert(strstr(said, "r:1002: 990 more mistakes than are told, up to this line\n") !=
				  NULL ||
			  strstr(said,
				 "r:1001: 990 more mistakes than are told, up to this line\n") !=
				  NULL,
		  "%s", said);
}

Test(rules, zeros_are_no_text_and_a_byte_order_mark_is_none)
{
	struct tm_rules_text text = {"r", {"module=a\0b -> tier=session", 26}, '\n'};

	cr_assert_eq(parse("\xef\xbb\xbfsize=1K -> tier=session\n"), 1);
	said[0] = '\0';
	cr_assert_eq(tm_rules_parse(&rules, &text, tell, NULL), 0);
	cr_assert(strstr(said, "a character that is no text in 'module=a\\x00b") != NULL, "%s",
		  said);
}

Test(rules, a_file_may_hold_thousands)
{
	enum { MANY = 2000 };
	struct tm_rule *many = calloc(TM_RULES_MAX, sizeof(*many));
	char *text = calloc(MANY, 64), *at = text;
	struct tm_rules_set place = {0}, thread = {0};

	for (int i = 0; i < MANY; i++)
		at += sprintf(at, "size=%d -> tier=session\n", 70000 + i);
	struct tm_rules_text t = {"f", tm_str_of(text), '\n'};
	cr_assert_geq(tm_rules_count_lines(t.text, '\n'), MANY);
	tm_rules_init(&rules, many, TM_RULES_MAX);
	cr_assert_eq(tm_rules_parse(&rules, &t, NULL, NULL), MANY);
	tm_rules_match_place(&rules, NULL, &(struct tm_rules_place){.address = 1}, &place);
	tm_rules_match_thread(&rules, tm_str_of(""), &thread);
	cr_assert_eq(tm_rules_match(&rules, &place, &thread,
				    &(struct tm_rules_request){71999, 16, TM_PHASE_SERVE}),
		     MANY);
	cr_assert_not(tm_rules_reach_medium(&rules, &place));
	free(text);
	free(many);
}
