/* SPDX-License-Identifier: MIT */
/* core: yes */
/*
 * Random rules: lines of pieces of the grammar and of noise. Every complaint is one line that fits and
 * names a line that there is; every rule that is taken has an action, ranges that are not empty and
 * texts inside the input; what is asked of the table stays inside it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policies/rules.h"
#include "policies/rules_match.h"
#include "tests/fuzz/roll.h"

#define TEXT_MAX 2000
#define ROOM 40

static uint32_t line_count;

static const char *const pieces[] = {
	"module=",   "symbol=",    "thread=", "site=",      "size=",
	"size>=",    "size<=",     "align=",  "align>=",    "phase=",
	"load",      "serve",      "tier=",   "pool=",      "keep=",
	"huge=",     "node=",      "guard=",  "->",         " -> ",
	" ",         "\t",         "\n",      ";",          "#",
	"..",        "+",          "=",       "persistent", "session",
	"temporary", "auto",       "always",  "never",      "off",
	"sample",    "all",        "local",   "interleave", "1",
	"64",        "0",          "768K",    "1M",         "99999999999999999999",
	"0x10",      "a1b2c3d4e5", "lib*.so", "*",          "[a-",
	"]",         "\\",         "?",       "\x01",       "\xff",
	"'",
};

static size_t make_text(char *text)
{
	size_t used = 0;

	for (uint32_t n = roll(80); n > 0; n--) {
		const char *piece = pieces[roll(sizeof(pieces) / sizeof(pieces[0]))];
		size_t len = strlen(piece);

		/* A whole rule now and then, or hardly any would be taken. */
		if (roll(12) == 0) {
			piece = "\nmodule=lib* size>=1K phase=serve -> tier=session keep=1M\n";
			len = strlen(piece);
		}
		if (used + len > TEXT_MAX)
			break;
		memcpy(text + used, piece, len);
		used += len;
	}
	return used;
}

static void check_problem(void *context, const struct tm_rules_problem *problem)
{
	char line[512];
	size_t len = tm_rules_describe(line, sizeof(line), problem);

	(void)context;
	must(len < sizeof(line), "a complaint is too long");
	must(problem->line >= 1 && problem->line <= line_count, "a complaint names no line");
	for (size_t i = 0; i < len; i++)
		must(line[i] != '\n' && line[i] != '\0', "a complaint is not one line");
}

static void check_inside(struct tm_str part, const char *text, size_t len)
{
	must(part.len == 0 || (part.at >= text && part.at + part.len <= text + len),
	     "a text outside the input");
}

static void check_rule(const struct tm_rule *r, const char *text, size_t len)
{
	const struct tm_rule_actions *a = &r->actions;

	check_inside(r->module, text, len);
	check_inside(r->symbol, text, len);
	check_inside(r->thread, text, len);
	check_inside(r->site, text, len);
	check_inside(r->text, text, len);
	must(r->size_min <= r->size_max && r->align_min <= r->align_max, "an empty range");
	must(a->tier || a->pool || a->keep_set || a->huge || a->node || a->guard, "no action");
	must(a->tier < TM_TIER_COUNT && a->huge <= TM_RULE_HUGE_NEVER, "words");
	must(a->guard <= TM_RULE_GUARD_ALL && a->node <= TM_RULE_NODE_LOCAL, "words");
	must(r->line >= 1 && r->line <= line_count, "a rule of no line");
}

static void ask(struct tm_rules *rules)
{
	struct tm_rules_place place = {.address = roll(1000),
				       .module = tm_str_of("libggml.so"),
				       .build_id = tm_str_of("a1b2c3d4e5f6"),
				       .offset = roll(20)};
	struct tm_rules_request request = {roll(2000000), 16u << roll(8),
					   roll(2) ? TM_PHASE_LOAD : TM_PHASE_SERVE};
	struct tm_rules_set by_place = {0}, by_thread = {0};
	uint32_t count = atomic_load(&rules->count);
	uint32_t number;

	tm_rules_match_place(rules, NULL, &place, &by_place);
	tm_rules_match_thread(rules, tm_str_of(roll(2) ? "worker" : ""), &by_thread);
	number = tm_rules_match(rules, &by_place, &by_thread, &request);
	must(number <= count, "a rule beyond the table");
	must(number == 0 || atomic_load(&rules->rule[number - 1].used) == 1, "not marked as used");
	for (uint32_t i = count; i < TM_RULES_MAX; i++)
		must(!(by_place.word[i / 64] >> (i % 64) & 1), "a set beyond the table");
}

int main(void)
{
	uint64_t runs = getenv("TM_LONG") ? 10000000 : 100000;
	uint64_t taken = 0;
	static struct tm_rule memory[ROOM + 1];

	for (run = 0; run < runs; run++) {
		struct tm_rules_text input = {.file = "f", .separator = run % 2 ? '\n' : ';'};
		struct tm_rules rules;
		char *text;
		size_t len;

		state = run;
		/* On the heap and without an end, so that a tool sees every byte read behind it. */
		static char draft[TEXT_MAX];
		len = make_text(draft);
		text = malloc(len ? len : 1);
		memcpy(text, draft, len);
		input.text = (struct tm_str){text, len};
		line_count = 1;
		for (size_t i = 0; i < len; i++)
			line_count += text[i] == '\n' || text[i] == input.separator;
		memory[ROOM].line = 0x5a5a;
		tm_rules_init(&rules, memory, run % 16 ? ROOM : roll(3));
		tm_rules_parse(&rules, &input, check_problem, NULL);
		must(atomic_load(&rules.count) <= rules.capacity, "more rules than room");
		must(atomic_load(&rules.count) <= tm_rules_count_lines(input.text, input.separator),
		     "more rules than lines");
		must(memory[ROOM].line == 0x5a5a, "written behind the table");
		for (uint32_t i = 0; i < atomic_load(&rules.count); i++)
			check_rule(&memory[i], text, len);
		taken += atomic_load(&rules.count);
		ask(&rules);
		free(text);
	}
	must(taken > runs / 4, "hardly any rule was taken: the test asks too little");
	return 0;
}
