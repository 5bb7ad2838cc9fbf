/* SPDX-License-Identifier: MIT */
#include "tools/runner/options.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum kind {
	KIND_FLAG,
	KIND_TEXT,
	KIND_COUNT,   /* 1 .. UINT32_MAX - 1 */
	KIND_THREADS, /* 1 .. MOST_THREADS */
	KIND_SEED,    /* 0 .. UINT32_MAX */
	KIND_INT,     /* -1 .. INT32_MAX */
	KIND_FLOAT,   /* not negative */
	KIND_PART,    /* 0 .. 1 */
	KIND_DOUBLE,  /* not negative */
	KIND_SIZE,
	KIND_CHOICE
};

#define MOST_THREADS 1024

struct choice {
	const char *name;
	int value;
};

static const struct choice loads[] = {{"mmap", YI_LOAD_MMAP}, {"read", YI_LOAD_READ}, {0}};
static const struct choice populates[] = {{"none", YI_POPULATE_NONE},
					  {"willneed", YI_POPULATE_WILLNEED},
					  {"all", YI_POPULATE_ALL},
					  {0}};
static const struct choice kv_types[] = {{"f16", YI_F16}, {"f32", YI_F32}, {"q8_0", YI_Q8_0}, {0}};
static const struct choice kv_allocs[] = {
	{"grow", YI_KV_GROW}, {"full", YI_KV_FULL}, {"ring", YI_KV_RING}, {0}};
static const struct choice devices[] = {{"cpu", YI_DEVICE_CPU}, {"cuda", YI_DEVICE_CUDA}, {0}};
static const struct choice limits[] = {{"live", YI_LIMIT_LIVE}, {"mapped", YI_LIMIT_MAPPED}, {0}};

#define BOTH (YI_VERB_RUN | YI_VERB_SERVE)
#define RUN YI_VERB_RUN
#define SERVE YI_VERB_SERVE
#define AT(member) offsetof(struct yi_options, member)

static const struct option {
	const char *name;
	int verbs;
	enum kind kind;
	size_t at;
	const struct choice *choices;
} options[] = {
	{"-m", BOTH, KIND_TEXT, AT(model), NULL},
	{"-p", RUN, KIND_TEXT, AT(prompt), NULL},
	{"-f", RUN, KIND_TEXT, AT(prompt_file), NULL},
	{"--tokens", RUN, KIND_TEXT, AT(token_list), NULL},
	{"--tokenize", RUN, KIND_TEXT, AT(tokenize), NULL},
	{"--save", RUN, KIND_TEXT, AT(save), NULL},
	{"--restore", RUN, KIND_TEXT, AT(restore), NULL},
	{"--logits", RUN, KIND_TEXT, AT(logits), NULL},
	{"--stats", BOTH, KIND_TEXT, AT(stats), NULL},
	{"-n", BOTH, KIND_COUNT, AT(n), NULL},
	{"-c", BOTH, KIND_COUNT, AT(context), NULL},
	{"-t", BOTH, KIND_THREADS, AT(threads), NULL},
	{"--chat", RUN, KIND_FLAG, AT(chat), NULL},
	{"--exact", BOTH, KIND_FLAG, AT(exact), NULL},
	{"--quiet", BOTH, KIND_FLAG, AT(quiet), NULL},
	{"--greedy", BOTH, KIND_FLAG, AT(sampling.greedy), NULL},
	{"--temp", BOTH, KIND_FLOAT, AT(sampling.temperature), NULL},
	{"--top-k", BOTH, KIND_INT, AT(sampling.top_k), NULL},
	{"--top-p", BOTH, KIND_PART, AT(sampling.top_p), NULL},
	{"--min-p", BOTH, KIND_PART, AT(sampling.min_p), NULL},
	{"--repeat-penalty", BOTH, KIND_FLOAT, AT(sampling.repeat_penalty), NULL},
	{"--repeat-last", BOTH, KIND_SEED, AT(sampling.repeat_last), NULL},
	{"--seed", BOTH, KIND_SEED, AT(sampling.seed), NULL},
	{"--load", BOTH, KIND_CHOICE, AT(load), loads},
	{"--populate", BOTH, KIND_CHOICE, AT(populate), populates},
	{"--kv", BOTH, KIND_CHOICE, AT(kv_type), kv_types},
	{"--kv-alloc", BOTH, KIND_CHOICE, AT(kv_alloc), kv_allocs},
	{"--device", BOTH, KIND_CHOICE, AT(device), devices},
	{"--sessions", SERVE, KIND_COUNT, AT(sessions), NULL},
	{"--concurrency", SERVE, KIND_COUNT, AT(concurrency), NULL},
	{"--batch", SERVE, KIND_COUNT, AT(batch), NULL},
	{"--requests", SERVE, KIND_TEXT, AT(requests), NULL},
	{"--answers", SERVE, KIND_TEXT, AT(answers), NULL},
	{"--memory-limit", SERVE, KIND_SIZE, AT(memory_limit), NULL},
	{"--limit-by", SERVE, KIND_CHOICE, AT(limit_by), limits},
	{"--kv-pool", SERVE, KIND_SIZE, AT(pool_bytes), NULL},
	{"--rate", SERVE, KIND_DOUBLE, AT(rate), NULL},
	{"--share", SERVE, KIND_DOUBLE, AT(share), NULL},
	{"--leak-demo", SERVE, KIND_FLAG, AT(leak_demo), NULL},
};

#define OPTIONS (sizeof(options) / sizeof(options[0]))

static const struct yi_options defaults = {
	.n = 64,
	.sampling = YI_SAMPLING_DEFAULTS,
	.load = YI_LOAD_MMAP,
	.kv_type = YI_F16,
	.concurrency = 8,
	.batch = 64,
	.pool_bytes = (uint64_t)256 << 20,
	.share = .25,
};

static int bad_value(const struct option *option, const char *value, const char *wanted,
		     struct yi_error *error)
{
	return yi_error_set(error, YI_EXIT_USAGE, -EINVAL, "bad value '%s' for %s, %s", value,
			    option->name, wanted);
}

/* A whole decimal number between the bounds. */
static bool read_integer(const char *text, long long low, long long high, long long *ret)
{
	char *end;

	errno = 0;
	*ret = strtoll(text, &end, 10);
	return end != text && !*end && errno == 0 && *ret >= low && *ret <= high;
}

static bool read_real(const char *text, double *ret)
{
	char *end;

	*ret = strtod(text, &end);
	return end != text && !*end && isfinite(*ret);
}

/* Bytes, with K M G T for powers of 1024. */
static bool read_size(const char *text, uint64_t *ret)
{
	static const char units[] = "KMGT";
	char *end;
	unsigned long long value;
	const char *unit;
	uint64_t scale = 1;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (end == text || errno || text[0] == '-')
		return false;
	unit = *end ? strchr(units, *end) : NULL;
	if (*end && (!unit || end[1]))
		return false;
	if (unit)
		scale = (uint64_t)1 << (10 * (unit - units + 1));
	return !__builtin_mul_overflow(value, scale, ret);
}

static int set_choice(const struct option *option, const char *value, void *at,
		      struct yi_error *error)
{
	char wanted[64] = "one of";

	for (const struct choice *choice = option->choices; choice->name; choice++) {
		if (strcmp(choice->name, value) == 0) {
			memcpy(at, &choice->value, sizeof(choice->value));
			return 0;
		}
		strncat(wanted, " ", sizeof(wanted) - strlen(wanted) - 1);
		strncat(wanted, choice->name, sizeof(wanted) - strlen(wanted) - 1);
	}
	return bad_value(option, value, wanted, error);
}

static int set(const struct option *option, const char *value, struct yi_options *ret,
	       struct yi_error *error)
{
	char *at = (char *)ret + option->at;
	long long integer;
	double real;

	switch (option->kind) {
	case KIND_FLAG: *(bool *)(void *)at = true; return 0;
	case KIND_TEXT: *(const char **)(void *)at = value; return 0;
	case KIND_COUNT:
		if (!read_integer(value, 1, (long long)UINT32_MAX - 1, &integer))
			return bad_value(option, value, "a number from 1 to 4294967294", error);
		*(uint32_t *)(void *)at = (uint32_t)integer;
		return 0;
	case KIND_THREADS:
		if (!read_integer(value, 1, MOST_THREADS, &integer))
			return bad_value(option, value, "a number from 1 to 1024", error);
		*(uint32_t *)(void *)at = (uint32_t)integer;
		return 0;
	case KIND_SEED:
		if (!read_integer(value, 0, UINT32_MAX, &integer))
			return bad_value(option, value, "a number from 0 to 4294967295", error);
		*(uint32_t *)(void *)at = (uint32_t)integer;
		return 0;
	case KIND_INT:
		if (!read_integer(value, -1, INT32_MAX, &integer))
			return bad_value(option, value, "a number up to 2147483647, 0 is off",
					 error);
		*(int32_t *)(void *)at = (int32_t)integer;
		return 0;
	case KIND_FLOAT:
		if (!read_real(value, &real) || real < 0 || !isfinite((float)real))
			return bad_value(option, value, "a number from 0 on", error);
		*(float *)(void *)at = (float)real;
		return 0;
	case KIND_PART:
		if (!read_real(value, &real) || real < 0 || real > 1)
			return bad_value(option, value, "a number from 0 to 1", error);
		*(float *)(void *)at = (float)real;
		return 0;
	case KIND_DOUBLE:
		if (!read_real(value, &real) || real < 0)
			return bad_value(option, value, "a number from 0 on", error);
		*(double *)(void *)at = real;
		return 0;
	case KIND_SIZE:
		if (!read_size(value, (uint64_t *)(void *)at))
			return bad_value(option, value, "bytes, with K, M, G or T", error);
		return 0;
	case KIND_CHOICE: return set_choice(option, value, at, error);
	}
	return -EINVAL;
}

static const struct option *find(enum yi_verb verb, const char *name)
{
	for (size_t i = 0; i < OPTIONS; i++)
		if ((options[i].verbs & (int)verb) && strcmp(options[i].name, name) == 0)
			return &options[i];
	return NULL;
}

static int check(enum yi_verb verb, const struct yi_options *options_read, struct yi_error *error)
{
	const struct yi_options *o = options_read;
	int prompts = !!o->prompt + !!o->prompt_file + !!o->token_list;

	if (!o->model)
		return yi_error_set(error, YI_EXIT_USAGE, -EINVAL,
				    "no model given, name one with -m MODEL.gguf, or see "
				    "yi-coder-run --help");
	if (prompts > 1)
		return yi_error_set(error, YI_EXIT_USAGE, -EINVAL,
				    "-p, -f and --tokens exclude each other");
	if (o->save && o->restore && strcmp(o->save, o->restore) == 0)
		return yi_error_set(error, YI_EXIT_USAGE, -EINVAL,
				    "--save and --restore name the same file");
	if (o->share > 1)
		return yi_error_set(error, YI_EXIT_USAGE, -EINVAL,
				    "bad value for --share, a part between 0 and 1");
	if (o->sampling.repeat_penalty <= 0)
		return yi_error_set(error, YI_EXIT_USAGE, -EINVAL,
				    "bad value for --repeat-penalty, a number above 0");
	(void)verb;
	return 0;
}

int yi_options_parse(enum yi_verb verb, int argc, char **argv, int first,
		     struct yi_options *ret_options, struct yi_error *error)
{
	struct yi_options read = defaults;
	int code = 0;

	for (int i = first; code == 0 && i < argc; i++) {
		const struct option *option = find(verb, argv[i]);
		const char *value = NULL;

		if (!option)
			return yi_error_set(error, YI_EXIT_USAGE, -EINVAL,
					    *argv[i] == '-' ? "unknown option '%s'"
							    : "unexpected argument '%s'",
					    argv[i]);
		if (option->kind != KIND_FLAG) {
			if (i + 1 >= argc)
				return yi_error_set(error, YI_EXIT_USAGE, -EINVAL,
						    "%s needs a value", argv[i]);
			value = argv[++i];
		}
		if (option->at == AT(n))
			read.n_given = true;
		code = set(option, value, &read, error);
	}
	if (code == 0)
		code = check(verb, &read, error);
	if (code == 0)
		*ret_options = read;
	return code;
}

int yi_options_tokens(const char *list, uint32_t limit, int (*add)(void *arg, uint32_t id),
		      void *arg, struct yi_error *error)
{
	const char *at = list;

	for (;;) {
		char *end;
		unsigned long id;

		errno = 0;
		id = strtoul(at, &end, 10);
		if (end == at || *at < '0' || *at > '9' || errno || id >= limit ||
		    (*end && *end != ','))
			return yi_error_set(error, YI_EXIT_USAGE, -EINVAL,
					    "bad value '%.40s' for --tokens, ids below %u "
					    "separated by commas",
					    at, limit);
		if (add(arg, (uint32_t)id))
			return yi_error_set(error, YI_EXIT_TROUBLE, -ENOMEM,
					    "no memory for the tokens");
		if (!*end)
			return 0;
		at = end + 1;
	}
}
