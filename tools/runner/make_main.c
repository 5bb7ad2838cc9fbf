/* SPDX-License-Identifier: MIT */
/* The verb make-model: reads its options; the work is in make_model.c. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tools/runner/make_model.h"
#include "tools/runner/run.h"

static __attribute__((format(printf, 1, 2))) int usage(const char *format, ...)
{
	va_list args;

	fputs("yi-coder-run: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return YI_EXIT_USAGE;
}

/* Dimensions of a shape that may be changed, for tests of other shapes. */
static uint32_t *dimension(struct yi_shape *shape, const char *name)
{
	const struct {
		const char *name;
		uint32_t *at;
	} dimensions[] = {
		{"--layers", &shape->n_layer}, {"--embd", &shape->n_embd},
		{"--heads", &shape->n_head},   {"--kv-heads", &shape->n_head_kv},
		{"--ff", &shape->n_ff},        {"--vocab", &shape->n_vocab},
		{"--ctx", &shape->n_ctx},
	};

	for (size_t i = 0; i < sizeof(dimensions) / sizeof(dimensions[0]); i++)
		if (strcmp(dimensions[i].name, name) == 0)
			return dimensions[i].at;
	return NULL;
}

static bool parse_number(const char *text, uint64_t max, uint64_t *ret)
{
	char *end;
	unsigned long long number;

	errno = 0;
	number = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || number > max)
		return false;
	*ret = number;
	return true;
}

static bool parse_type(const char *name, struct yi_make_model *make)
{
	const struct yi_type_traits *traits;

	make->mixed = strcasecmp(name, "Q4_K_M") == 0 || strcasecmp(name, "Q5_K_M") == 0;
	if (make->mixed) {
		make->type = name[1] == '4' ? YI_Q4_K : YI_Q5_K;
		return true;
	}
	traits = yi_type_by_name(name, &make->type);
	return traits && traits->weights;
}

/* NULL, or what is wrong with the dimensions. */
static const char *misfit(const struct yi_shape *shape)
{
	const uint32_t dims[] = {shape->n_layer,   shape->n_embd, shape->n_head,
				 shape->n_head_kv, shape->n_ff,   shape->n_ctx};

	for (size_t i = 0; i < sizeof(dims) / sizeof(dims[0]); i++)
		if (dims[i] == 0)
			return "no dimension may be 0";
	if (shape->n_layer > 512)
		return "--layers may be 512 at most";
	if (shape->n_embd % shape->n_head || shape->n_embd / shape->n_head % 2)
		return "--embd must be an even multiple of --heads";
	if (shape->n_head % shape->n_head_kv)
		return "--heads must be a multiple of --kv-heads";
	if (shape->n_vocab < 512 || shape->n_vocab > 262144)
		return "--vocab may be 512 to 262144";
	return NULL;
}

static bool is(const char *word, const char *name)
{
	return strcmp(word, name) == 0;
}

/* An option with its value; 0 or the exit status. */
static int set(struct yi_make_model *make, const char **path, const char *name, const char *value)
{
	uint32_t *at = dimension(&make->shape, name);
	uint64_t number;

	if (!at && !is(name, "--type") && !is(name, "--seed") && !is(name, "-o") &&
	    !is(name, "--shape"))
		return usage(*name == '-' ? "unknown option '%s'" : "unexpected argument '%s'",
			     name);
	if (!value)
		return usage("%s needs a value", name);
	if (at) {
		if (!parse_number(value, UINT32_MAX >> 8, &number))
			return usage("bad value '%s' for %s, a number up to %u", value, name,
				     UINT32_MAX >> 8);
		*at = (uint32_t)number;
	} else if (is(name, "--type")) {
		if (!parse_type(value, make))
			return usage(
				"bad value '%s' for --type, F32 F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 "
				"Q2_K Q3_K Q4_K Q5_K Q6_K Q4_K_M or Q5_K_M",
				value);
	} else if (is(name, "--seed")) {
		if (!parse_number(value, UINT64_MAX, &make->seed))
			return usage("bad value '%s' for --seed, a number from 0 on", value);
	} else if (is(name, "-o")) {
		*path = value;
	}
	return 0;
}

int yi_make_model_main(int argc, char **argv)
{
	struct yi_make_model make = {.type = YI_Q8_0, .seed = 1};
	struct yi_error error = {0};
	const char *path = NULL;

	/* The shape first: dimensions change it, wherever they stand. */
	for (int i = 2; i + 1 < argc; i++)
		if (is(argv[i], "--shape")) {
			const struct yi_shape *shape = yi_make_model_shape(argv[i + 1]);

			if (!shape)
				return usage("bad value '%s' for --shape, one of yi-coder-1.5b "
					     "smollm2-135m tiny",
					     argv[i + 1]);
			make.shape = *shape;
		}
	for (int i = 2; i < argc; i++) {
		if (is(argv[i], "--tied")) {
			make.shape.tied = true;
		} else if (is(argv[i], "--rope-freqs")) {
			make.shape.rope_freqs = true;
		} else {
			const int status = set(&make, &path, argv[i], argv[i + 1]);

			if (status)
				return status;
			i++;
		}
	}
	if (!make.shape.name)
		return usage("make-model needs a --shape, one of yi-coder-1.5b smollm2-135m tiny");
	if (!path)
		return usage("make-model needs -o FILE");
	if (misfit(&make.shape))
		return usage("bad dimensions: %s", misfit(&make.shape));
	if (yi_make_model(&make, path, &error)) {
		fprintf(stderr, "yi-coder-run: %s\n", error.text);
		return error.status;
	}
	return 0;
}
