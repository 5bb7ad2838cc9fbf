/* SPDX-License-Identifier: MIT */
/*
 * rules: parses the text of tiermalloc-rules(5) into a table. The first rule whose every match
 * holds decides; rules_match.h queries the table. A mistake costs its own line only: it is reported
 * to the caller, and the other lines apply.
 *
 * Owns nothing: the array of rules and the text are lent by the caller and must stay, since
 * patterns are slices of the text. tm_rules_parse may be called again to append. One writer at a
 * time; readers continue meanwhile, because `count` is published last.
 */
#ifndef TM_POLICIES_RULES_H
#define TM_POLICIES_RULES_H

#include <stdatomic.h>

#include "shim/base/attrs.h"
#include "shim/base/parse.h"
#include "shim/base/tunables.h"

#define TM_RULES_MAX 4096u
#define TM_RULES_WORDS (TM_RULES_MAX / 64)
#define TM_RULES_LINE_MAX 4096u

/*
 * Sizes in bytes of requests that consult rules only where one can apply to their call site
 * (shim/medium.c).
 */
#define TM_RULES_MEDIUM_MIN 1025u
#define TM_RULES_MEDIUM_MAX 65536u

/* TM_PHASE_ANY occurs in rules only. */
enum tm_phase_kind { TM_PHASE_ANY, TM_PHASE_LOAD, TM_PHASE_SERVE };

enum tm_rule_huge {
	TM_RULE_HUGE_UNSET,
	TM_RULE_HUGE_AUTO,
	TM_RULE_HUGE_ALWAYS,
	TM_RULE_HUGE_NEVER
};
enum tm_rule_guard {
	TM_RULE_GUARD_UNSET,
	TM_RULE_GUARD_OFF,
	TM_RULE_GUARD_SAMPLE,
	TM_RULE_GUARD_ALL
};
enum tm_rule_node {
	TM_RULE_NODE_UNSET,
	TM_RULE_NODE_NUMBER,
	TM_RULE_NODE_INTERLEAVE,
	TM_RULE_NODE_LOCAL
};

/* What a rule asks for; a field is zero if the rule does not set it. */
struct tm_rule_actions {
	uint8_t tier;  /* enum tm_tier; TM_TIER_ALL: the rule does not choose the tier */
	uint8_t huge;  /* enum tm_rule_huge */
	uint8_t guard; /* enum tm_rule_guard */
	uint8_t node;  /* enum tm_rule_node */
	uint32_t node_number;
	uint32_t pool; /* free blocks of the size to keep ready; 0: not set */
	bool keep_set;
	uint64_t keep_bytes;
};

struct tm_rule {
	struct tm_str module; /* globs and names: slices of the lent text; len 0: not asked */
	struct tm_str symbol;
	struct tm_str thread;
	struct tm_str site; /* build id in hex, or the module's file name */
	uint64_t site_offset;
	uint64_t size_min, size_max;
	uint64_t align_min, align_max;
	enum tm_phase_kind phase;
	uint32_t line;
	struct tm_rule_actions actions;
	struct tm_str text;    /* the whole rule, for people */
	_Atomic uint32_t used; /* [atomic] 1: the rule has decided at least one request */
	bool is_profile;       /* [const after boot] decides only where no other rule does */
};

struct tm_rules {
	struct tm_rule *rule;        /* [const] lent */
	uint32_t capacity;           /* [const after boot] at most TM_RULES_MAX */
	_Atomic uint32_t count;      /* [atomic] rules with a smaller index are complete */
	_Atomic uint32_t generation; /* [atomic] incremented by each append; 1 after the first */
	bool by_place;               /* some rule matches on module, symbol or site */
	bool by_symbol;
	bool by_thread;
};

struct tm_rules_problem {
	const char *file; /* as the caller named it */
	uint32_t line;
	const char *problem;
	struct tm_str subject;
	/* if not 0: stands for this many further mistakes, which are not reported singly */
	uint32_t more;
};

/*
 * At most this many mistakes are reported singly: a file that holds no rules has one in each line.
 */
#define TM_RULES_MISTAKES_TOLD 10u

typedef void tm_rules_report(void *context, const struct tm_rules_problem *problem);

struct tm_rules_text {
	const char *file; /* named in problems: a path, or TIERMALLOC_RULES */
	struct tm_str text;
	char separator; /* '\n' in a file; in a variable both '\n' and ';': TM_RULES_INLINE */
};
#define TM_RULES_INLINE ';'

/* Whether a value of TIERMALLOC_RULES is rules and not a file name. */
bool tm_rules_is_inline(struct tm_str value);

/* `memory` holds `capacity` rules. */
void tm_rules_init(struct tm_rules *rules, struct tm_rule *memory, uint32_t capacity);

/* Upper bound of the rules in `text`, to size the array that is lent. */
uint32_t tm_rules_count_lines(struct tm_str text, char separator);

/* Parses `text` and appends its rules; returns how many were added. `report` may be NULL. */
uint32_t tm_rules_parse(struct tm_rules *rules, const struct tm_rules_text *text,
			tm_rules_report *report, void *context);

/*
 * Formats "FILE:LINE: problem 'subject'"; returns the length as tm_fmt does. The caller writes
 * "tiermalloc: " in front.
 */
size_t tm_rules_describe(char *buf, size_t size, const struct tm_rules_problem *problem);

#endif
