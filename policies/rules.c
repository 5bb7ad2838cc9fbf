/* SPDX-License-Identifier: MIT */
/*
 * rules: see rules.h. A line is split at "->" and both halves into words; each word is looked up in
 * a table.
 */
#include "policies/rules.h"

#include <errno.h>

#include "shim/base/fmt.h"

/* Characters of a mistake's subject that a message shows. */
#define SUBJECT_SHOWN 120

/* A mistake in the current line; problem is NULL if there is none. */
struct mistake {
	const char *problem;
	struct tm_str subject;
};

static struct mistake none(void)
{
	return (struct mistake){NULL, {NULL, 0}};
}

static struct mistake wrong(const char *problem, struct tm_str subject)
{
	return (struct mistake){problem, subject};
}

bool tm_rules_is_inline(struct tm_str value)
{
	for (size_t i = 0; i + 1 < value.len; i++) {
		if (value.at[i] == '-' && value.at[i + 1] == '>')
			return true;
	}
	return false;
}

void tm_rules_init(struct tm_rules *rules, struct tm_rule *memory, uint32_t capacity)
{
	*rules = (struct tm_rules){
		.rule = memory,
		.capacity = capacity < TM_RULES_MAX ? capacity : TM_RULES_MAX,
	};
}

static bool is_end(char c, char separator)
{
	return c == '\n' || c == separator;
}

uint32_t tm_rules_count_lines(struct tm_str text, char separator)
{
	uint32_t lines = 1;

	for (size_t i = 0; i < text.len && lines < TM_RULES_MAX; i++)
		lines += is_end(text.at[i], separator);
	return lines;
}

/* --- matches ---------------------------------------------------------------------------------- */

enum op { OP_EQUAL, OP_AT_LEAST, OP_AT_MOST };

static struct mistake set_text(struct tm_str *to, enum op op, struct tm_str key,
			       struct tm_str value)
{
	if (op != OP_EQUAL)
		return wrong("only = is allowed for", key);
	if (to->len != 0)
		return wrong("given twice:", key);
	*to = value;
	return none();
}

static bool find_dots(struct tm_str s, struct tm_str *ret_low, struct tm_str *ret_high)
{
	for (size_t i = 0; i + 1 < s.len; i++) {
		if (s.at[i] != '.' || s.at[i + 1] != '.')
			continue;
		*ret_low = (struct tm_str){s.at, i};
		*ret_high = (struct tm_str){s.at + i + 2, s.len - i - 2};
		return true;
	}
	return false;
}

static struct mistake set_range(uint64_t *min, uint64_t *max, enum op op, struct tm_str value)
{
	struct tm_str low_text = value, high_text = value;
	uint64_t low = 0, high = UINT64_MAX;
	bool range = op == OP_EQUAL && find_dots(value, &low_text, &high_text);

	if (op != OP_AT_MOST && tm_parse_size(low_text, &low) != 0)
		return wrong("not a size such as 768K:", low_text);
	if (op == OP_AT_MOST || range) {
		if (tm_parse_size(high_text, &high) != 0)
			return wrong("not a size such as 768K:", high_text);
	} else if (op == OP_EQUAL) {
		high = low;
	}
	if (range && low > high)
		return wrong("the range is empty:", value);
	if (low > *min)
		*min = low;
	if (high < *max)
		*max = high;
	return *min <= *max ? none() : wrong("no number is left after", value);
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static int parse_hex(struct tm_str s, uint64_t *ret_value)
{
	uint64_t value = 0;

	if (s.len > 2 && s.at[0] == '0' && (s.at[1] == 'x' || s.at[1] == 'X')) {
		s.at += 2;
		s.len -= 2;
	}
	if (s.len == 0 || s.len > 16)
		return -EINVAL;
	for (size_t i = 0; i < s.len; i++) {
		int digit = hex_digit(s.at[i]);

		if (digit < 0)
			return -EINVAL;
		value = value << 4 | (uint64_t)digit;
	}
	*ret_value = value;
	return 0;
}

/* BUILDID+OFFSET or FILE+OFFSET; split at the last plus sign, since file names may contain one. */
static struct mistake set_site(struct tm_rule *rule, enum op op, struct tm_str key,
			       struct tm_str value)
{
	size_t plus = value.len;
	struct tm_str name;

	while (plus > 0 && value.at[plus - 1] != '+')
		plus--;
	if (plus < 2)
		return wrong("not BUILDID+OFFSET:", value);
	name = (struct tm_str){value.at, plus - 1};
	if (parse_hex((struct tm_str){value.at + plus, value.len - plus}, &rule->site_offset) != 0)
		return wrong("not BUILDID+OFFSET:", value);
	return set_text(&rule->site, op, key, name);
}

static struct mistake set_phase(struct tm_rule *rule, enum op op, struct tm_str key,
				struct tm_str value)
{
	if (op != OP_EQUAL)
		return wrong("only = is allowed for", key);
	if (rule->phase != TM_PHASE_ANY)
		return wrong("given twice:", key);
	if (tm_str_is(value, "load"))
		rule->phase = TM_PHASE_LOAD;
	else if (tm_str_is(value, "serve"))
		rule->phase = TM_PHASE_SERVE;
	else
		return wrong("not load or serve:", value);
	return none();
}

/* Splits "key=value", "key>=value" or "key<=value". */
static struct mistake cut(struct tm_str word, struct tm_str *ret_key, enum op *ret_op,
			  struct tm_str *ret_value)
{
	size_t i = 0;
	size_t skip = 1;

	while (i < word.len && word.at[i] != '=' && word.at[i] != '<' && word.at[i] != '>')
		i++;
	if (i == 0 || i == word.len)
		return wrong("not KEY=VALUE:", word);
	*ret_op = OP_EQUAL;
	if (word.at[i] != '=') {
		*ret_op = word.at[i] == '>' ? OP_AT_LEAST : OP_AT_MOST;
		skip = 2;
		if (i + 1 == word.len || word.at[i + 1] != '=')
			return wrong("use =, >= or <= in", word);
	}
	*ret_key = (struct tm_str){word.at, i};
	*ret_value = (struct tm_str){word.at + i + skip, word.len - i - skip};
	return ret_value->len != 0 ? none() : wrong("no value in", word);
}

static struct mistake add_match(struct tm_rule *rule, struct tm_str word)
{
	struct tm_str key, value;
	enum op op;
	struct mistake m = cut(word, &key, &op, &value);

	if (m.problem)
		return m;
	if (tm_str_is(key, "module"))
		return set_text(&rule->module, op, key, value);
	if (tm_str_is(key, "symbol"))
		return set_text(&rule->symbol, op, key, value);
	if (tm_str_is(key, "thread"))
		return set_text(&rule->thread, op, key, value);
	if (tm_str_is(key, "site"))
		return set_site(rule, op, key, value);
	if (tm_str_is(key, "size"))
		return set_range(&rule->size_min, &rule->size_max, op, value);
	if (tm_str_is(key, "align"))
		return set_range(&rule->align_min, &rule->align_max, op, value);
	if (tm_str_is(key, "phase"))
		return set_phase(rule, op, key, value);
	return wrong("unknown match, use module, symbol, thread, site, size, align or phase, not",
		     key);
}

/* --- actions ---------------------------------------------------------------------------------- */

/*
 * Index of `value` in `words`, plus 1, which matches the order of the enums in rules.h; 0: not
 * found.
 */
static uint8_t word_of(struct tm_str value, const char *const *words)
{
	for (uint8_t i = 0; words[i] != NULL; i++) {
		if (tm_str_is(value, words[i]))
			return (uint8_t)(i + 1);
	}
	return 0;
}

static struct mistake set_node(struct tm_rule_actions *to, struct tm_str value)
{
	uint64_t number;

	if (tm_str_is(value, "interleave")) {
		to->node = TM_RULE_NODE_INTERLEAVE;
	} else if (tm_str_is(value, "local")) {
		to->node = TM_RULE_NODE_LOCAL;
	} else if (tm_parse_u64_in(value, 0, 1023, &number) == 0) {
		to->node = TM_RULE_NODE_NUMBER;
		to->node_number = (uint32_t)number;
	} else {
		return wrong("not a node's number, interleave or local:", value);
	}
	return none();
}

static struct mistake set_number(struct tm_rule_actions *to, struct tm_str key, struct tm_str value)
{
	uint64_t number;

	if (tm_str_is(key, "pool")) {
		if (tm_parse_u64_in(value, 1, UINT32_MAX, &number) != 0)
			return wrong("not a number of blocks:", value);
		to->pool = (uint32_t)number;
		return none();
	}
	if (tm_parse_size(value, &number) != 0)
		return wrong("not a size such as 768K:", value);
	to->keep_bytes = number;
	to->keep_set = true;
	return none();
}

static bool is_set(const struct tm_rule_actions *actions, struct tm_str key)
{
	if (tm_str_is(key, "tier"))
		return actions->tier != TM_TIER_ALL;
	if (tm_str_is(key, "huge"))
		return actions->huge != TM_RULE_HUGE_UNSET;
	if (tm_str_is(key, "guard"))
		return actions->guard != TM_RULE_GUARD_UNSET;
	if (tm_str_is(key, "node"))
		return actions->node != TM_RULE_NODE_UNSET;
	return tm_str_is(key, "pool") ? actions->pool != 0 : actions->keep_set;
}

static struct mistake add_action(struct tm_rule_actions *to, struct tm_str word)
{
	static const char *const huge[] = {"auto", "always", "never", NULL};
	static const char *const guard[] = {"off", "sample", "all", NULL};
	struct tm_str key, value;
	enum op op;
	struct mistake m = cut(word, &key, &op, &value);

	if (m.problem)
		return m;
	if (op != OP_EQUAL)
		return wrong("only = is allowed for", key);
	if (is_set(to, key))
		return wrong("given twice:", key);
	if (tm_str_is(key, "tier")) {
		to->tier = (uint8_t)tm_tunables_tier(value);
		return to->tier ? none() : wrong("not persistent, session or temporary:", value);
	}
	if (tm_str_is(key, "huge")) {
		to->huge = word_of(value, huge);
		return to->huge ? none() : wrong("not auto, always or never:", value);
	}
	if (tm_str_is(key, "guard")) {
		to->guard = word_of(value, guard);
		return to->guard ? none() : wrong("not off, sample or all:", value);
	}
	if (tm_str_is(key, "node"))
		return set_node(to, value);
	if (tm_str_is(key, "pool") || tm_str_is(key, "keep"))
		return set_number(to, key, value);
	return wrong("unknown action, use tier, pool, keep, huge, node or guard, not", key);
}

/* --- lines ------------------------------------------------------------------------------------ */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static bool next_word(struct tm_str *rest, struct tm_str *ret_word)
{
	size_t len = 0;

	while (rest->len && is_blank(rest->at[0])) {
		rest->at++;
		rest->len--;
	}
	while (len < rest->len && !is_blank(rest->at[len]))
		len++;
	*ret_word = (struct tm_str){rest->at, len};
	rest->at += len;
	rest->len -= len;
	return len != 0;
}

static bool has_arrow_inside(struct tm_str word)
{
	return word.len > 2 && tm_rules_is_inline(word);
}

/* False if the line has bytes that no pattern can mean to match: the file is not text. */
static bool is_text(struct tm_str line)
{
	for (size_t i = 0; i < line.len; i++)
		if ((unsigned char)line.at[i] < ' ' && !is_blank(line.at[i]))
			return false;
	return true;
}

/* Parses a line that is not blank and has no comment. */
static struct mistake parse_line(struct tm_str line, struct tm_rule *rule)
{
	struct tm_str rest = line, word;
	size_t actions = 0;
	bool arrow = false;

	*rule = (struct tm_rule){.size_max = UINT64_MAX, .align_max = UINT64_MAX, .text = line};
	if (!is_text(line))
		return wrong("a character that is no text in", line);
	/* Before its words: without an arrow, actions would be called unknown matches. */
	if (!tm_rules_is_inline(line))
		return wrong("no -> in", line);
	while (next_word(&rest, &word)) {
		struct mistake m;

		if (has_arrow_inside(word))
			return wrong("no blanks around -> in", word);
		if (tm_str_is(word, "->")) {
			if (arrow)
				return wrong("a second arrow in", line);
			arrow = true;
			continue;
		}
		m = arrow ? add_action(&rule->actions, word) : add_match(rule, word);
		/* report a wrong value together with its key */
		if (m.problem && m.subject.at > word.at && m.subject.at < word.at + word.len)
			m.subject = word;
		if (m.problem)
			return m;
		actions += arrow;
	}
	return actions ? none() : wrong("no action behind -> in", line);
}

static struct tm_str without_comment(struct tm_str line)
{
	for (size_t i = 0; i < line.len; i++) {
		if (line.at[i] == '#')
			line.len = i;
	}
	while (line.len && is_blank(line.at[0])) {
		line.at++;
		line.len--;
	}
	while (line.len && is_blank(line.at[line.len - 1]))
		line.len--;
	return line;
}

static struct tm_str next_line(struct tm_str *rest, char separator, bool *ret_newline)
{
	struct tm_str line = {rest->at, 0};

	while (line.len < rest->len && !is_end(rest->at[line.len], separator))
		line.len++;
	size_t used = line.len + (line.len < rest->len);
	*ret_newline = line.len < rest->len;
	rest->at += used;
	rest->len -= used;
	return line;
}

static void publish(struct tm_rules *rules, const struct tm_rule *rule)
{
	uint32_t count = atomic_load_explicit(&rules->count, memory_order_relaxed);

	rules->rule[count] = *rule;
	rules->by_place |= rule->module.len || rule->symbol.len || rule->site.len;
	rules->by_symbol |= rule->symbol.len != 0;
	rules->by_thread |= rule->thread.len != 0;
	atomic_store_explicit(&rules->count, count + 1, memory_order_release);
}

uint32_t tm_rules_parse(struct tm_rules *rules, const struct tm_rules_text *text,
			tm_rules_report *report, void *context)
{
	struct tm_str rest = text->text;
	uint32_t number = 0, added = 0, mistakes = 0;
	bool more = rest.len != 0;

	/* a byte order mark, which some editors write */
	if (tm_str_starts(rest, "\xef\xbb\xbf"))
		rest = (struct tm_str){rest.at + 3, rest.len - 3};
	while (more) {
		struct tm_str line = without_comment(next_line(&rest, text->separator, &more));
		struct tm_rules_problem problem = {text->file, ++number, NULL, {NULL, 0}, 0};
		struct mistake m;
		struct tm_rule rule;

		if (line.len == 0)
			continue;
		m = line.len > TM_RULES_LINE_MAX ? wrong("longer than 4096 characters:", line)
						 : parse_line(line, &rule);
		if (!m.problem && atomic_load(&rules->count) >= rules->capacity) {
			m = wrong("one rule too many, from here on none applies:", line);
			more = false;
		}
		if (!m.problem) {
			rule.line = number;
			publish(rules, &rule);
			added++;
			continue;
		}
		problem.problem = m.problem;
		problem.subject = m.subject;
		if (report && ++mistakes <= TM_RULES_MISTAKES_TOLD)
			report(context, &problem);
	}
	if (report && mistakes > TM_RULES_MISTAKES_TOLD)
		report(context, &(struct tm_rules_problem){
					.file = text->file,
					.line = number,
					.problem = "more mistakes than are told, up to this line",
					.more = mistakes - TM_RULES_MISTAKES_TOLD});
	if (added)
		atomic_fetch_add_explicit(&rules->generation, 1, memory_order_release);
	return added;
}

size_t tm_rules_describe(char *buf, size_t size, const struct tm_rules_problem *problem)
{
	struct tm_fmt_out out = {buf, size, 0};

	tm_fmt_add(&out, "%s:%u: ", problem->file, problem->line);
	if (problem->more != 0) {
		tm_fmt_add(&out, "%u %s", problem->more, problem->problem);
		return out.len;
	}
	tm_fmt_add(&out, "%s '", problem->problem);
	tm_fmt_add_escaped(&out, problem->subject.at, problem->subject.len, SUBJECT_SHOWN);
	tm_fmt_add_char(&out, '\'');
	return out.len;
}
