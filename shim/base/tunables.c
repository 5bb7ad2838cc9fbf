/* SPDX-License-Identifier: MIT */
/* tunables: see tunables.h. Owns the table of rows, which is constant. */
#include "shim/base/tunables.h"

#include <errno.h>

#include "config.h"

#include "shim/base/bits.h"
#include "shim/base/tunables_parse.h"

#define PREFIX "TIERMALLOC"
#define CONF "TIERMALLOC_CONF"

/* A value in a message is cut here. */
#define VALUE_SHOWN 120

/* parts.def as constants that a row's initialiser may name. */
enum {
#define P(part, built, name) PART_BUILT_##part = (built),
#include "shim/base/parts.def"
#undef P
};

enum {
#define P(part, built, name) PART_##part,
#include "shim/base/parts.def"
#undef P
};

const struct tm_tunable_row tm_tunables_rows[TM_TUNABLE_COUNT] = {
#define T(name, field, kind, words, value, allowed, part, meaning, details)                        \
	{#name,                                                                                    \
	 value,                                                                                    \
	 words,                                                                                    \
	 allowed,                                                                                  \
	 (uint16_t)offsetof(struct tm_options, field),                                             \
	 TM_KIND_##kind,                                                                           \
	 PART_##part,                                                                              \
	 PART_BUILT_##part},
#include "shim/base/tunables.def"
#undef T
};

/* Parts that words of a row name. */
static const struct {
	char id[16];
	char name[28];
	bool built;
} parts[] = {
#define P(part, built, name) {#part, name, built},
#include "shim/base/parts.def"
#undef P
};

const char *tm_tunables_part(const struct tm_tunable_row *row)
{
	return parts[row->part].name;
}

/* The name of a part that this build lacks, NULL for one that it has. */
static const char *missing_part(struct tm_str id)
{
	for (size_t i = 0; i < TM_ARRAY_LEN(parts); i++) {
		if (tm_str_is(id, parts[i].id))
			return parts[i].built ? NULL : parts[i].name;
	}
	return NULL;
}

/* One run of tm_tunables_read. */
struct reading {
	struct tm_options *options;
	const struct tm_tunables_input *input;
	struct tm_tunables_store store;
	struct tm_str values[TM_TUNABLE_COUNT]; /* from the environment; at == NULL: not there */
	struct tm_str conf;
};

static void report(const struct reading *reading, enum tm_tunables_trouble trouble,
		   struct tm_str name, struct tm_str value, const char *allowed)
{
	struct tm_tunables_problem problem = {trouble, name, value, allowed};

	if (reading->input->report)
		reading->input->report(reading->input->context, &problem);
}

/* Splits "NAME=value"; false for a string without '='. */
static bool split_entry(const char *entry, struct tm_str *ret_name, struct tm_str *ret_value)
{
	struct tm_str all = tm_str_of(entry);
	struct tm_str name;

	if (!tm_parse_next(&all, '=', &name) || all.at == name.at + name.len)
		return false;
	*ret_name = name;
	*ret_value = all;
	return true;
}

static int index_of(struct tm_str name)
{
	for (int i = 0; i < TM_TUNABLE_COUNT; i++) {
		if (tm_str_is(name, tm_tunables_rows[i].name))
			return i;
	}
	return -1;
}

/* The part of a variable's name that is its key in upper case; "TIERMALLOC" is its own key. */
static const char *key_name(const char *name)
{
	return name[sizeof(PREFIX) - 1] == '_' ? name + sizeof(PREFIX) : name;
}

static int index_of_key(struct tm_str key)
{
	for (size_t i = 0; i < key.len; i++) {
		if (key.at[i] >= 'A' && key.at[i] <= 'Z')
			return -1;
	}
	for (int i = 0; i < TM_TUNABLE_COUNT; i++) {
		if (tm_str_is_nocase(key, key_name(tm_tunables_rows[i].name)))
			return i;
	}
	return -1;
}

/* Letters that differ after the best alignment by one insertion, removal or exchange of neighbours. */
static bool is_near(struct tm_str a, const char *other)
{
	struct tm_str b = tm_str_of(other);
	size_t head = 0, tail = 0;
	size_t left_a, left_b;

	if (a.len > b.len + 1 || b.len > a.len + 1)
		return false;
	while (head < a.len && head < b.len && (a.at[head] & ~32) == (b.at[head] & ~32))
		head++;
	while (tail < a.len - head && tail < b.len - head &&
	       (a.at[a.len - 1 - tail] & ~32) == (b.at[b.len - 1 - tail] & ~32))
		tail++;
	left_a = a.len - head - tail;
	left_b = b.len - head - tail;
	return left_a <= 1 ? left_b <= 1 : left_a == 2 && left_b == 2;
}

static const char *nearest(struct tm_str name, bool is_key)
{
	for (int i = 0; i < TM_TUNABLE_COUNT; i++) {
		const char *known = tm_tunables_rows[i].name;

		if (is_near(name, is_key ? key_name(known) : known))
			return known;
	}
	return NULL;
}

/* Whether a value asks for nothing, so that a missing part need not be spoken of. */
static bool is_inert(const struct tm_tunable_row *row, struct tm_str value)
{
	static const char *const words[] = {"off", "none", "never", "auto", "0"};

	if (tm_str_is(value, row->value))
		return true;
	for (size_t i = 0; i < TM_ARRAY_LEN(words); i++) {
		if (tm_str_is(value, words[i]))
			return true;
	}
	return false;
}

static void apply(struct reading *reading, int index, struct tm_str name, struct tm_str value,
		  enum tm_source source)
{
	const struct tm_tunable_row *row = &tm_tunables_rows[index];
	const char *missing;
	int err;

	if (value.len == 0) /* as if it were not set */
		return;
	if (!row->built && !is_inert(row, value)) {
		report(reading, TM_TROUBLE_NOT_BUILT, name, value, tm_tunables_part(row));
		return;
	}
	missing = missing_part(tm_tunables_parse_part(row, value));
	if (missing)
		report(reading, TM_TROUBLE_PARTLY, name, value, missing);
	err = tm_tunables_parse_value(reading->options, row, value, &reading->store);
	if (err == 0)
		reading->options->source[index] = (uint8_t)source;
	else if (err == -ENOMEM)
		report(reading, TM_TROUBLE_ROOM, name, value, NULL);
	else
		report(reading, TM_TROUBLE_VALUE, name, value, row->allowed);
}

static void apply_defaults(struct tm_options *options)
{
	struct tm_tunables_store none = {NULL, 0};

	*options = (struct tm_options){.decay_percent = 100};
	for (int i = 0; i < TM_TUNABLE_COUNT; i++)
		(void)tm_tunables_parse_value(options, &tm_tunables_rows[i],
					      tm_str_of(tm_tunables_rows[i].value), &none);
}

/* Next item of TIERMALLOC_CONF, still escaped: up to a colon that has no backslash before it. */
static bool next_conf_item(struct tm_str *rest, struct tm_str *ret_item)
{
	size_t i = 0;

	if (rest->len == 0)
		return false;
	while (i < rest->len && rest->at[i] != ':')
		i += rest->at[i] == '\\' && i + 1 < rest->len ? 2 : 1;
	*ret_item = (struct tm_str){rest->at, i};
	i += i < rest->len;
	rest->at += i;
	rest->len -= i;
	return true;
}

/* A copy without the escapes; at == NULL when there is no room. */
static struct tm_str unescape(struct tm_tunables_store *store, struct tm_str text)
{
	struct tm_str plain = {store->at, 0};
	char *to = store->at;

	if (text.len >= store->left)
		return (struct tm_str){NULL, 0};
	for (size_t i = 0; i < text.len; i++) {
		i += text.at[i] == '\\' && i + 1 < text.len &&
		     (text.at[i + 1] == ':' || text.at[i + 1] == '\\');
		to[plain.len++] = text.at[i];
	}
	to[plain.len] = '\0';
	store->at += plain.len + 1;
	store->left -= plain.len + 1;
	return plain;
}

static void read_conf(struct reading *reading)
{
	struct tm_str rest = reading->conf;
	struct tm_str item, key, value;

	while (next_conf_item(&rest, &item)) {
		int index;

		if (item.len == 0)
			continue;
		value = item;
		if (!tm_parse_next(&value, '=', &key) || value.at == key.at + key.len) {
			report(reading, TM_TROUBLE_ITEM, tm_str_of(CONF), item, NULL);
			continue;
		}
		key = tm_str_trim(key);
		index = index_of_key(key);
		if (index < 0) {
			report(reading, TM_TROUBLE_KEY, key, value, nearest(key, true));
			continue;
		}
		value = unescape(&reading->store, value);
		if (value.at == NULL)
			report(reading, TM_TROUBLE_ROOM, key, item, NULL);
		else
			apply(reading, index, tm_str_of(tm_tunables_rows[index].name), value,
			      TM_SOURCE_CONF);
	}
}

/* The first of two entries of one name counts, as with getenv. */
static void note(struct tm_str *slot, struct tm_str value)
{
	if (slot->at == NULL)
		*slot = value;
}

static void collect(struct reading *reading)
{
	struct tm_str name, value;

	for (char *const *entry = reading->input->env; *entry; entry++) {
		int index;

		if ((*entry)[0] != 'T' || !tm_str_starts(tm_str_of(*entry), PREFIX) ||
		    !split_entry(*entry, &name, &value))
			continue;
		index = index_of(name);
		if (index >= 0)
			note(&reading->values[index], value);
		else if (tm_str_is(name, CONF))
			note(&reading->conf, value);
		else if (tm_str_starts(name, PREFIX "_"))
			report(reading, TM_TROUBLE_VARIABLE, name, value, nearest(name, false));
	}
}

/* A default is replaced, what the user said about us stays. */
static void translate_quantity(struct reading *reading, enum tm_tunable which, uint64_t *field,
			       uint64_t value)
{
	if (reading->options->source[which] == TM_SOURCE_DEFAULT) {
		*field = value;
		reading->options->source[which] = TM_SOURCE_FOREIGN;
	}
}

/* Bytes that may stay free at the end of glibc's heap: what the tiers with turnover keep. */
static bool translate_trim(struct reading *reading, struct tm_str value)
{
	struct tm_options *options = reading->options;
	uint64_t bytes;

	if (tm_parse_u64(value, &bytes) || bytes >= TM_OPTION_AUTO)
		return false;
	translate_quantity(reading, TM_TUNABLE_TIERMALLOC_SESSION_KEEP,
			   &options->keep_bytes[TM_TIER_SESSION], bytes);
	translate_quantity(reading, TM_TUNABLE_TIERMALLOC_TEMPORARY_KEEP,
			   &options->keep_bytes[TM_TIER_TEMPORARY], bytes);
	return true;
}

/* jemalloc: -1, or the widely copied 9000000000, keeps freed pages for ever. */
static bool translate_jemalloc(struct reading *reading, struct tm_str value)
{
	struct tm_str item, key;
	uint64_t ms;

	while (tm_parse_next(&value, ',', &item)) {
		if (!tm_parse_next(&item, ':', &key) || !tm_str_is(key, "dirty_decay_ms"))
			continue;
		if (tm_str_is(item, "-1") || (tm_parse_u64(item, &ms) == 0 && ms >= 1000000000)) {
			reading->options->retain = 1;
			return true;
		}
	}
	return false;
}

/* gperftools: 0 keeps for ever, 1 is usual, 10 gives back fast. */
static bool translate_release_rate(struct reading *reading, struct tm_str value)
{
	struct tm_str whole;
	uint64_t tenths, rest = 0;

	if (!tm_parse_next(&value, '.', &whole) || tm_parse_u64_in(whole, 0, 1000, &tenths))
		return false;
	tenths *= 10;
	if (value.len && tm_parse_u64((struct tm_str){value.at, 1}, &rest) == 0)
		tenths += rest;
	if (tenths == 0)
		reading->options->retain = 1;
	else
		reading->options->decay_percent = (uint32_t)tm_bits_clamp(1000 / tenths, 10, 1000);
	return true;
}

static void read_foreign(struct reading *reading)
{
	static const struct {
		const char *name;
		bool (*translate)(struct reading *, struct tm_str);
	} known[] = {
		{"MALLOC_TRIM_THRESHOLD_", translate_trim},
		{"MALLOC_CONF", translate_jemalloc},
		{"TCMALLOC_RELEASE_RATE", translate_release_rate},
	};
	static const char *const prefixes[] = {"MALLOC_", "TCMALLOC_", "MIMALLOC_",
					       "GLIBC_TUNABLES"};
	struct tm_str name, value;

	for (char *const *entry = reading->input->env; *entry; entry++) {
		bool translated = false;
		bool foreign = false;

		for (size_t i = 0; i < TM_ARRAY_LEN(prefixes); i++)
			foreign |= tm_str_starts(tm_str_of(*entry), prefixes[i]);
		if (!foreign || !split_entry(*entry, &name, &value))
			continue;
		for (size_t i = 0; i < TM_ARRAY_LEN(known); i++) {
			if (tm_str_is(name, known[i].name))
				translated = known[i].translate(reading, value);
		}
		report(reading, translated ? TM_TROUBLE_TRANSLATED : TM_TROUBLE_FOREIGN, name,
		       value, NULL);
	}
}

TM_AT_START_CODE size_t tm_tunables_store_bytes(char *const *env)
{
	size_t bytes = 0;

	for (; env && *env; env++) {
		struct tm_str entry = tm_str_of(*env);

		if (entry.at[0] == 'T' && tm_str_starts(entry, PREFIX))
			bytes += entry.len + 1;
	}
	return bytes;
}

TM_AT_START_CODE void tm_tunables_read(struct tm_options *ret_options,
				       const struct tm_tunables_input *input)
{
	struct reading reading = {
		.options = ret_options,
		.input = input,
		.store = {input->store, input->store_bytes},
	};

	apply_defaults(ret_options);
	if (input->env == NULL)
		return;
	collect(&reading);
	read_conf(&reading);
	for (int i = 0; i < TM_TUNABLE_COUNT; i++) {
		if (reading.values[i].at)
			apply(&reading, i, tm_str_of(tm_tunables_rows[i].name), reading.values[i],
			      TM_SOURCE_ENV);
	}
	read_foreign(&reading);
}

bool tm_tunables_is_warning(const struct tm_tunables_problem *problem)
{
	return problem->trouble != TM_TROUBLE_TRANSLATED && problem->trouble != TM_TROUBLE_FOREIGN;
}

/* On one line, cut when long. */
static void add_clean(struct tm_fmt_out *out, struct tm_str text)
{
	tm_fmt_add_escaped(out, text.at, text.len, VALUE_SHOWN);
}

static void add_value(struct tm_fmt_out *out, struct tm_str value)
{
	tm_fmt_add_char(out, '\'');
	add_clean(out, value);
	tm_fmt_add_char(out, '\'');
}

static void add_assignment(struct tm_fmt_out *out, const struct tm_tunables_problem *problem)
{
	add_clean(out, problem->name);
	tm_fmt_add_char(out, '=');
	add_value(out, problem->value);
}

static void add_key_hint(struct tm_fmt_out *out, const char *known)
{
	if (known == NULL) {
		tm_fmt_add(out, ", keys are the names of tiermalloc-tunables(5) without prefix, "
				"in lower case");
		return;
	}
	tm_fmt_add(out, ", did you mean '");
	for (known = key_name(known); *known; known++)
		tm_fmt_add_char(out, *known >= 'A' && *known <= 'Z' ? (char)(*known | 32) : *known);
	tm_fmt_add_char(out, '\'');
}

size_t tm_tunables_describe(char *buf, size_t size, const struct tm_tunables_problem *problem)
{
	struct tm_fmt_out out = {buf, size, 0};
	const char *allowed = problem->allowed;

	if (size)
		buf[0] = '\0';
	switch (problem->trouble) {
	case TM_TROUBLE_VALUE:
		tm_fmt_add(&out, "bad value ");
		add_value(&out, problem->value);
		tm_fmt_add(&out, " of ");
		add_clean(&out, problem->name);
		tm_fmt_add(&out, ", use %s", allowed);
		break;
	case TM_TROUBLE_VARIABLE:
		tm_fmt_add(&out, "unknown variable ");
		add_assignment(&out, problem);
		tm_fmt_add(&out, ", %s", allowed ? "did you mean " : "see tiermalloc-tunables(5)");
		tm_fmt_add(&out, "%s", allowed ? allowed : "");
		break;
	case TM_TROUBLE_KEY:
		tm_fmt_add(&out, "unknown key ");
		add_value(&out, problem->name);
		tm_fmt_add(&out, " with value ");
		add_value(&out, problem->value);
		tm_fmt_add(&out, " in " CONF);
		add_key_hint(&out, allowed);
		break;
	case TM_TROUBLE_ITEM:
		tm_fmt_add(&out, "bad item ");
		add_value(&out, problem->value);
		tm_fmt_add(&out, " of " CONF ", use KEY=VALUE:KEY=VALUE");
		break;
	case TM_TROUBLE_NOT_BUILT:
		add_assignment(&out, problem);
		tm_fmt_add(&out, " has no effect, this build lacks %s", allowed);
		break;
	case TM_TROUBLE_PARTLY:
		add_assignment(&out, problem);
		tm_fmt_add(&out, " has its effect in part only, this build lacks %s", allowed);
		break;
	case TM_TROUBLE_ROOM:
		tm_fmt_add(&out, "no memory for the value of ");
		add_clean(&out, problem->name);
		break;
	case TM_TROUBLE_TRANSLATED:
	case TM_TROUBLE_FOREIGN:
		add_assignment(&out, problem);
		tm_fmt_add(&out, "%s",
			   problem->trouble == TM_TROUBLE_FOREIGN ? " is ignored"
								  : " is taken over");
		break;
	}
	return out.len;
}

size_t tm_tunables_print(char *buf, size_t size, const struct tm_options *options,
			 enum tm_tunable which)
{
	struct tm_fmt_out out = {buf, size, 0};

	if (size)
		buf[0] = '\0';
	tm_tunables_parse_print(&out, options, &tm_tunables_rows[which]);
	return out.len;
}

const char *tm_tunables_source_name(enum tm_source source)
{
	static const char *const names[] = {"default", "other allocator", "TIERMALLOC_CONF",
					    "environment"};

	return (unsigned int)source < TM_ARRAY_LEN(names) ? names[source] : "?";
}
