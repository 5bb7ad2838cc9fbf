/* SPDX-License-Identifier: MIT */
/* The verb make-model: reads its options; the work is in make_model.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tools/runner/make_model.h"
#include "tools/runner/run.h"

static int usage(const char *problem, const char *subject)
{
	fprintf(stderr, "yi-coder-run: %s '%s', see yi-coder-run(1)\n", problem, subject);
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

static bool fits(const struct yi_shape *shape)
{
	const uint32_t dims[] = {shape->n_layer,   shape->n_embd, shape->n_head,
				 shape->n_head_kv, shape->n_ff,   shape->n_ctx};

	for (size_t i = 0; i < sizeof(dims) / sizeof(dims[0]); i++)
		if (dims[i] == 0)
			return false;
	return shape->n_layer <= 512 && shape->n_embd % shape->n_head == 0 &&
	       shape->n_embd / shape->n_head % 2 == 0 && shape->n_head % shape->n_head_kv == 0 &&
	       shape->n_vocab >= 512 && shape->n_vocab <= 262144;
}

int yi_make_model_main(int argc, char **argv)
{
	struct yi_make_model make = {.type = YI_Q8_0, .seed = 1};
	struct yi_error error = {0};
	const char *path = NULL;

	for (int i = 2; i + 1 < argc; i++)
		if (strcmp(argv[i], "--shape") == 0) {
			const struct yi_shape *shape = yi_make_model_shape(argv[i + 1]);

			if (!shape)
				return usage("unknown shape", argv[i + 1]);
			make.shape = *shape;
		}
	for (int i = 2; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;
		uint32_t *at = dimension(&make.shape, argv[i]);
		uint64_t number;

		if (strcmp(argv[i], "--tied") == 0) {
			make.shape.tied = true;
			continue;
		}
		if (strcmp(argv[i], "--rope-freqs") == 0) {
			make.shape.rope_freqs = true;
			continue;
		}
		if (!value)
			return usage("unknown option or no value for", argv[i]);
		i++;
		if (at && parse_number(value, UINT32_MAX >> 8, &number))
			*at = (uint32_t)number;
		else if (strcmp(argv[i - 1], "--type") == 0 && parse_type(value, &make))
			continue;
		else if (strcmp(argv[i - 1], "--seed") == 0 &&
			 parse_number(value, UINT64_MAX, &number))
			make.seed = number;
		else if (strcmp(argv[i - 1], "-o") == 0)
			path = value;
		else if (strcmp(argv[i - 1], "--shape"))
			return usage("unknown option or bad value for", argv[i - 1]);
	}
	if (!make.shape.name || !path)
		return usage("make-model needs", make.shape.name ? "-o FILE" : "--shape");
	if (!fits(&make.shape))
		return usage("dimensions don't fit together in shape", make.shape.name);
	if (yi_make_model(&make, path, &error)) {
		fprintf(stderr, "yi-coder-run: %s\n", error.text);
		return error.status;
	}
	return 0;
}
