/* SPDX-License-Identifier: MIT */
/* tunables_parse: see tunables_parse.h. Owns nothing. */
#include "shim/base/tunables_parse.h"

#include <errno.h>

#include "shim/base/bits.h"

/* TIERMALLOC_GUARD=sample without a number: at 1000 the guard pages cost under 1 %. */
#define GUARD_ONE_IN 1000

static void *field_of(struct tm_options *options, const struct tm_tunable_row *row)
{
	return (char *)options + row->offset;
}

static const void *field_in(const struct tm_options *options, const struct tm_tunable_row *row)
{
	return (const char *)options + row->offset;
}

const char *tm_tunables_parse_keep(struct tm_tunables_store *store, struct tm_str text)
{
	char *copy = store->at;

	if (text.len >= store->left)
		return NULL;
	for (size_t i = 0; i < text.len; i++)
		copy[i] = text.at[i];
	copy[text.len] = '\0';
	store->at += text.len + 1;
	store->left -= text.len + 1;
	return copy;
}

/* The next word of "a|b@PART|c" and its part, empty where it names none. */
static bool next_word(struct tm_str *rest, struct tm_str *ret_word, struct tm_str *ret_part)
{
	if (!tm_parse_next(rest, '|', ret_part))
		return false;
	(void)tm_parse_next(ret_part, '@', ret_word);
	return true;
}

/* Position of the value among the words, or -1. */
static TM_AT_START_CODE int word_index(const char *words, struct tm_str value)
{
	struct tm_str rest = tm_str_of(words);
	struct tm_str word, part;

	for (int i = 0; next_word(&rest, &word, &part); i++) {
		if (tm_str_equal(word, value))
			return i;
	}
	return -1;
}

struct tm_str tm_tunables_parse_part(const struct tm_tunable_row *row, struct tm_str value)
{
	struct tm_str rest = tm_str_of(row->words);
	struct tm_str word, part;

	while (next_word(&rest, &word, &part)) {
		if (tm_str_equal(word, value))
			return part;
	}
	return (struct tm_str){NULL, 0};
}

static struct tm_str word_at(const char *words, uint32_t index)
{
	struct tm_str rest = tm_str_of(words);
	struct tm_str word = {"?", 1};
	struct tm_str part;

	for (uint32_t i = 0; i <= index; i++) {
		if (!next_word(&rest, &word, &part))
			return (struct tm_str){"?", 1};
	}
	return word;
}

static int parse_word(uint32_t *ret_field, const struct tm_tunable_row *row, struct tm_str value)
{
	int index = word_index(row->words, value);

	if (index < 0)
		return -EINVAL;
	*ret_field = (uint32_t)index;
	return 0;
}

static int parse_quantity(uint64_t *ret_field, const struct tm_tunable_row *row,
			  struct tm_str value)
{
	uint64_t number = 0;
	int err;

	if (word_index(row->words, value) >= 0) {
		*ret_field = tm_str_is(value, "none") ? TM_OPTION_NONE : TM_OPTION_AUTO;
		return 0;
	}
	if (row->kind == TM_KIND_SIZE)
		err = tm_parse_size(value, &number);
	else if (row->kind == TM_KIND_TIME)
		err = tm_parse_time(value, &number);
	else
		err = tm_parse_u64_in(value, 1, 86400000, &number);
	/* The largest numbers are the words'; no memory and no time is that large. */
	if (err || number >= TM_OPTION_AUTO)
		return -EINVAL;
	*ret_field = number;
	return 0;
}

static int parse_text(const char **ret_field, const struct tm_tunable_row *row, struct tm_str value,
		      struct tm_tunables_store *store)
{
	const char *copy = NULL;

	if (!tm_str_is(value, row->value)) {
		copy = tm_tunables_parse_keep(store, value);
		if (copy == NULL)
			return -ENOMEM;
	}
	*ret_field = copy;
	return 0;
}

enum tm_tier tm_tunables_tier(struct tm_str name)
{
	for (int tier = TM_TIER_ALL + 1; tier < TM_TIER_COUNT; tier++) {
		if (tm_str_is(name, tm_tunables_tier_name((enum tm_tier)tier)))
			return (enum tm_tier)tier;
	}
	return TM_TIER_ALL;
}

const char *tm_tunables_tier_name(enum tm_tier tier)
{
	static const char *const names[] = {
		"all",
#define X(tier, name, meaning) name,
#include "shim/base/tiers.def"
#undef X
	};

	return (unsigned int)tier < TM_TIER_COUNT ? names[tier] : "?";
}

int tm_tunables_next_pool(struct tm_str *rest, struct tm_tunables_pool *ret_pool)
{
	struct tm_tunables_pool pool = {0, 0, TM_TIER_ALL};
	struct tm_str item, part, tier;

	if (!tm_parse_next(rest, ',', &item))
		return 0;
	tier = item;
	if (!tm_parse_next(&tier, '@', &item))
		return -EINVAL;
	if (tier.at != item.at + item.len) {
		pool.tier = tm_tunables_tier(tier);
		if (pool.tier == TM_TIER_ALL)
			return -EINVAL;
	}
	if (!tm_parse_next(&item, '*', &part) || tm_parse_size(part, &pool.bytes) ||
	    tm_parse_u64_in(item, 1, UINT32_MAX, &pool.count) || pool.bytes == 0)
		return -EINVAL;
	*ret_pool = pool;
	return 1;
}

static int parse_pools(struct tm_options *options, const struct tm_tunable_row *row,
		       struct tm_str value, struct tm_tunables_store *store)
{
	struct tm_tunables_pool pool;
	struct tm_str rest = value;
	int got = 0;

	if (tm_str_is(value, "none")) {
		options->pools = "none";
		return 0;
	}
	if (!tm_str_is(value, "auto")) {
		while ((got = tm_tunables_next_pool(&rest, &pool)) > 0)
			;
	}
	return got ? got : parse_text(&options->pools, row, value, store);
}

/* "0,2-3" */
static bool is_node_list(struct tm_str value)
{
	struct tm_str item, low;
	uint64_t a, b;
	bool any = false;

	while (tm_parse_next(&value, ',', &item)) {
		if (!tm_parse_next(&item, '-', &low) || tm_parse_u64_in(low, 0, 1023, &a))
			return false;
		if (item.at == low.at + low.len)
			b = a;
		else if (tm_parse_u64_in(item, a, 1023, &b))
			return false;
		any = true;
	}
	return any;
}

static int parse_numa(struct tm_options *options, const struct tm_tunable_row *row,
		      struct tm_str value, struct tm_tunables_store *store)
{
	const char *copy;

	if (parse_word(&options->numa, row, value) == 0) {
		options->numa_nodes = NULL;
		return 0;
	}
	if (!is_node_list(value))
		return -EINVAL;
	copy = tm_tunables_parse_keep(store, value);
	if (copy == NULL)
		return -ENOMEM;
	options->numa = TM_NUMA_NODES;
	options->numa_nodes = copy;
	return 0;
}

static int parse_guard(struct tm_options *options, const struct tm_tunable_row *row,
		       struct tm_str value)
{
	uint64_t one_in = GUARD_ONE_IN;
	struct tm_str word;

	if (!tm_parse_next(&value, '=', &word))
		return -EINVAL;
	if (value.at != word.at + word.len &&
	    (!tm_str_is(word, "sample") || tm_parse_u64_in(value, 1, UINT32_MAX, &one_in)))
		return -EINVAL;
	if (parse_word(&options->guard, row, word))
		return -EINVAL;
	options->guard_one_in = (uint32_t)one_in;
	return 0;
}

static int parse_fill(struct tm_options *options, struct tm_str value)
{
	int32_t fill[2] = {-1, -1};
	struct tm_str item, key;
	uint64_t byte;

	if (tm_str_is(value, "none"))
		value.len = 0;
	while (tm_parse_next(&value, ',', &item)) {
		if (!tm_parse_next(&item, '=', &key) || tm_parse_u64_in(item, 0, 255, &byte))
			return -EINVAL;
		if (tm_str_is(key, "alloc"))
			fill[0] = (int32_t)byte;
		else if (tm_str_is(key, "free"))
			fill[1] = (int32_t)byte;
		else
			return -EINVAL;
	}
	options->fill_alloc = fill[0];
	options->fill_free = fill[1];
	return 0;
}

static int parse_align(struct tm_options *options, struct tm_str value)
{
	uint64_t bytes;

	if (tm_parse_size(value, &bytes) || bytes < 16 || bytes > 4096 || !tm_bits_is_pow2(bytes))
		return -EINVAL;
	options->align_bytes = (uint32_t)bytes;
	return 0;
}

static int parse_deepbind(struct tm_options *options, const struct tm_tunable_row *row,
			  struct tm_str value, struct tm_tunables_store *store)
{
	const char *copy = NULL;

	if (parse_word(&options->deepbind, row, value)) {
		copy = tm_tunables_parse_keep(store, value);
		if (copy == NULL)
			return -ENOMEM;
		options->deepbind = TM_DEEPBIND_GLOBS;
	}
	options->deepbind_globs = copy;
	return 0;
}

/* quiet, warn and info stand alone; topics are heard beside the warnings. */
static int parse_log(struct tm_options *options, const struct tm_tunable_row *row,
		     struct tm_str value)
{
	uint32_t mask = TM_LOG_WARN;
	struct tm_str item;

	if (tm_str_is(value, "quiet")) {
		options->log = TM_LOG_QUIET;
		return 0;
	}
	while (tm_parse_next(&value, ',', &item)) {
		int index = word_index(row->words, tm_str_trim(item));

		if (index <= 0)
			return -EINVAL;
		if (index == 2) /* info: everything */
			mask |= TM_LOG_INFO | TM_LOG_CUDA | TM_LOG_TIERS | TM_LOG_GIVEBACK;
		else
			mask |= (uint32_t)1 << (index - 1);
	}
	options->log = mask;
	return 0;
}

TM_AT_START_CODE int tm_tunables_parse_value(struct tm_options *options,
					     const struct tm_tunable_row *row, struct tm_str value,
					     struct tm_tunables_store *store)
{
	switch ((enum tm_tunable_kind)row->kind) {
	case TM_KIND_WORD: return parse_word(field_of(options, row), row, value);
	case TM_KIND_SIZE:
	case TM_KIND_TIME:
	case TM_KIND_NUMBER: return parse_quantity(field_of(options, row), row, value);
	case TM_KIND_TEXT: return parse_text(field_of(options, row), row, value, store);
	case TM_KIND_POOLS: return parse_pools(options, row, value, store);
	case TM_KIND_NUMA: return parse_numa(options, row, value, store);
	case TM_KIND_GUARD: return parse_guard(options, row, value);
	case TM_KIND_FILL: return parse_fill(options, value);
	case TM_KIND_ALIGN: return parse_align(options, value);
	case TM_KIND_DEEPBIND: return parse_deepbind(options, row, value, store);
	case TM_KIND_LOG: return parse_log(options, row, value);
	}
	return -EINVAL;
}

static void print_quantity(struct tm_fmt_out *out, const struct tm_tunable_row *row, uint64_t value)
{
	char text[32];

	if (value == TM_OPTION_NONE)
		tm_fmt(text, sizeof(text), "none");
	else if (value == TM_OPTION_AUTO)
		tm_fmt(text, sizeof(text), "auto");
	else if (row->kind == TM_KIND_SIZE)
		tm_fmt_size(text, sizeof(text), value);
	else if (row->kind == TM_KIND_TIME)
		tm_fmt_time(text, sizeof(text), value);
	else
		tm_fmt(text, sizeof(text), "%llu", (unsigned long long)value);
	tm_fmt_add(out, "%s", text);
}

static void print_fill(struct tm_fmt_out *out, const struct tm_options *options)
{
	if (options->fill_alloc >= 0)
		tm_fmt_add(out, "alloc=0x%02x", (unsigned int)options->fill_alloc);
	if (options->fill_alloc >= 0 && options->fill_free >= 0)
		tm_fmt_add_char(out, ',');
	if (options->fill_free >= 0)
		tm_fmt_add(out, "free=0x%02x", (unsigned int)options->fill_free);
	if (options->fill_alloc < 0 && options->fill_free < 0)
		tm_fmt_add(out, "none");
}

static void print_log(struct tm_fmt_out *out, const struct tm_options *options,
		      const struct tm_tunable_row *row)
{
	const char *between = "";

	if (options->log == TM_LOG_QUIET || options->log == TM_LOG_WARN ||
	    options->log & TM_LOG_INFO) {
		tm_fmt_add(out, "%s",
			   options->log & TM_LOG_INFO ? "info"
			   : options->log             ? "warn"
						      : "quiet");
		return;
	}
	for (uint32_t index = 3; index < 6; index++) {
		struct tm_str word = word_at(row->words, index);

		if (options->log & (uint32_t)1 << (index - 1)) {
			tm_fmt_add(out, "%s%.*s", between, (int)word.len, word.at);
			between = ",";
		}
	}
}

static void print_text(struct tm_fmt_out *out, const struct tm_tunable_row *row, const char *text)
{
	tm_fmt_add(out, "%s", text ? text : row->value);
}

static void print_word(struct tm_fmt_out *out, const struct tm_tunable_row *row, uint32_t index)
{
	struct tm_str word = word_at(row->words, index);

	tm_fmt_add(out, "%.*s", (int)word.len, word.at);
}

void tm_tunables_parse_print(struct tm_fmt_out *out, const struct tm_options *options,
			     const struct tm_tunable_row *row)
{
	switch ((enum tm_tunable_kind)row->kind) {
	case TM_KIND_WORD: print_word(out, row, *(const uint32_t *)field_in(options, row)); break;
	case TM_KIND_SIZE:
	case TM_KIND_TIME:
	case TM_KIND_NUMBER:
		print_quantity(out, row, *(const uint64_t *)field_in(options, row));
		break;
	case TM_KIND_TEXT:
	case TM_KIND_POOLS:
		print_text(out, row, *(const char *const *)field_in(options, row));
		break;
	case TM_KIND_NUMA:
		if (options->numa == TM_NUMA_NODES)
			print_text(out, row, options->numa_nodes);
		else
			print_word(out, row, options->numa);
		break;
	case TM_KIND_GUARD:
		print_word(out, row, options->guard);
		if (options->guard == TM_GUARD_SAMPLE)
			tm_fmt_add(out, "=%u", options->guard_one_in);
		break;
	case TM_KIND_FILL: print_fill(out, options); break;
	case TM_KIND_ALIGN: tm_fmt_add(out, "%u", options->align_bytes); break;
	case TM_KIND_DEEPBIND:
		if (options->deepbind == TM_DEEPBIND_GLOBS)
			print_text(out, row, options->deepbind_globs);
		else
			print_word(out, row, options->deepbind);
		break;
	case TM_KIND_LOG: print_log(out, options, row); break;
	}
}
