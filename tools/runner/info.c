/* SPDX-License-Identifier: MIT */
/* The verb info: what a file contains, what running it needs, what a run really used. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/runner/forward.h"
#include "tools/runner/json.h"
#include "tools/runner/mem.h"
#include "tools/runner/model_check.h"
#include "tools/runner/run.h"
#include "tools/runner/vocab.h"

struct info {
	const char *path, *measured;
	uint32_t context, sessions, batch;
	enum yi_type kv_type;
	bool check, tensors;
	struct yi_error error;
	struct yi_model *model;
	struct yi_vocab *vocab;
	uint64_t predicted[YI_MEM_CLASSES];
	uint64_t peak[YI_MEM_CLASSES]; /* measured; 0: not given */
};

static bool parse_count(const char *text, uint32_t *ret)
{
	char *end;
	unsigned long number;

	errno = 0;
	number = strtoul(text, &end, 10);
	if (*text < '1' || *text > '9' || *end || errno || number > UINT32_MAX)
		return false;
	*ret = (uint32_t)number;
	return true;
}

/* Handles an option; returns NULL, or what its value should have been. */
static const char *set(struct info *info, const char *name, const char *value)
{
	static const char number[] = "a number from 1 to 4294967295";
	enum yi_type type;

	if (strcmp(name, "-c") == 0)
		return parse_count(value, &info->context) ? NULL : number;
	if (strcmp(name, "--sessions") == 0)
		return parse_count(value, &info->sessions) ? NULL : number;
	if (strcmp(name, "--batch") == 0)
		return parse_count(value, &info->batch) ? NULL : number;
	if (strcmp(name, "--measured") == 0) {
		info->measured = value;
		return NULL;
	}
	/* --kv */
	if (!yi_type_by_name(value, &type) || (type != YI_F16 && type != YI_F32 && type != YI_Q8_0))
		return "one of f16 f32 q8_0";
	info->kv_type = type;
	return NULL;
}

static int parse_option(struct info *info, const char *name, const char *value)
{
	static const char *const names[] = {"-c", "--sessions", "--batch", "--measured", "--kv"};
	const char *wanted;
	size_t i = 0;

	while (i < sizeof(names) / sizeof(names[0]) && strcmp(names[i], name))
		i++;
	if (i == sizeof(names) / sizeof(names[0]))
		return yi_error_set(
			&info->error, YI_EXIT_USAGE, -EINVAL,
			*name == '-' ? "unknown option '%s'" : "unexpected argument '%s'", name);
	if (!value)
		return yi_error_set(&info->error, YI_EXIT_USAGE, -EINVAL, "%s needs a value", name);
	wanted = set(info, name, value);
	return wanted ? yi_error_set(&info->error, YI_EXIT_USAGE, -EINVAL,
				     "bad value '%s' for %s, %s", value, name, wanted)
		      : 0;
}

static int parse(struct info *info, int argc, char **argv)
{
	for (int i = 2; i < argc; i++) {
		if (strcmp(argv[i], "--check") == 0)
			info->check = true;
		else if (strcmp(argv[i], "--tensors") == 0)
			info->tensors = true;
		else if (argv[i][0] != '-' && !info->path)
			info->path = argv[i];
		else if (parse_option(info, argv[i], argv[i + 1]))
			return -EINVAL;
		else
			i++;
	}
	if (!info->path)
		return yi_error_set(&info->error, YI_EXIT_USAGE, -EINVAL,
				    "no model given, name one with info MODEL.gguf");
	return 0;
}

static double mib(uint64_t bytes)
{
	return (double)bytes / 1048576;
}

static void print_file(const struct info *info)
{
	const struct yi_gguf *file = info->model->file;
	struct yi_text name = {"(no name)", 9};
	struct yi_error ignored = {0};

	yi_gguf_get_text(file, "general.name", &name, &ignored);
	printf("file         %s, %.2f MiB, GGUF version %u, %u values, alignment %u\n", info->path,
	       mib(file->file_bytes), file->version, file->n_values, file->alignment);
	/* Names come from the file: control characters are left out. */
	fputs("model        ", stdout);
	for (size_t i = 0; i < name.len && i < 64; i++)
		if ((unsigned char)name.bytes[i] >= 0x20 && name.bytes[i] != 0x7f)
			putchar(name.bytes[i]);
	putchar('\n');
}

static void print_shape(const struct info *info)
{
	const struct yi_model *model = info->model;
	const struct yi_hparams *hp = &model->hp;

	printf("shape        %u layers, embedding %u, feed-forward %u, %u heads of %u, %u for keys "
	       "and values\n",
	       hp->n_layer, hp->n_embd, hp->n_ff, hp->n_head, hp->head_dim, hp->n_head_kv);
	printf("context      %u tokens, rotation base %g%s\n", hp->n_ctx_train,
	       (double)hp->rope_base, model->rope_freqs ? ", with frequency factors" : "");
	printf("vocabulary   %u tokens, %s, output %s\n", hp->n_vocab,
	       info->vocab->kind == YI_VOCAB_SPM ? "SentencePiece" : "byte-level",
	       model->output.data == model->embd.data ? "tied to the embedding" : "of its own");
	printf("parameters   %" PRIu64 ", %.2f bits each\n", model->parameters,
	       (double)model->weight_bytes * 8 / (double)model->parameters);
}

static void print_types(const struct info *info)
{
	const struct yi_gguf *file = info->model->file;
	uint64_t bytes[YI_TYPE_LIMIT] = {0};
	uint32_t count[YI_TYPE_LIMIT] = {0};

	for (uint32_t i = 0; i < file->n_tensors; i++) {
		const struct yi_gguf_tensor *tensor = &file->tensors[i];

		count[tensor->type]++;
		bytes[tensor->type] += tensor->bytes;
		if (info->tensors)
			printf("%-5s [%6" PRIu64 ", %6" PRIu64 "] %10.2f MiB  %s\n",
			       yi_type_find(tensor->type)->name, tensor->ne[0], tensor->ne[1],
			       mib(tensor->bytes), tensor->name);
	}
	for (uint32_t i = 0; i < YI_TYPE_LIMIT; i++)
		if (count[i])
			printf("tensors      %4u of %-5s %10.2f MiB\n", count[i],
			       yi_type_find(i)->name, mib(bytes[i]));
}

static void predict(struct info *info)
{
	const struct yi_hparams *hp = &info->model->hp;
	const uint64_t per_token = yi_kv_bytes_per_token(hp, info->kv_type);
	/*
	 * Sampling lists the vocabulary, 12 bytes per token, while the rows of logits are still
	 * live.
	 */
	const uint64_t drawing = (uint64_t)hp->n_vocab * (sizeof(float) * info->sessions + 12);
	struct yi_mem_count count;

	info->predicted[YI_MEM_WEIGHTS] = info->model->file->data_bytes;
	info->predicted[YI_MEM_KV] = per_token * info->context * info->sessions;
	info->predicted[YI_MEM_ACTIVATIONS] =
		yi_forward_bytes(hp, info->batch, info->sessions, info->context);
	if (info->predicted[YI_MEM_ACTIVATIONS] < drawing)
		info->predicted[YI_MEM_ACTIVATIONS] = drawing;
	/* Loaded already, so its size is known. */
	yi_mem_read(YI_MEM_TOKENIZER, &count);
	info->predicted[YI_MEM_TOKENIZER] = count.live_bytes;
}

static bool is(const struct yi_json_item *item, const char *text)
{
	return item->len == strlen(text) && memcmp(item->text, text, item->len) == 0;
}

/* Reads peak_bytes of each class from "memory" in a --stats file. */
static int read_peaks(struct info *info, char *text, size_t len)
{
	struct yi_json json;
	struct yi_json_item item;
	enum yi_json_kind kind;
	bool memory = false, peak = false;
	int class = -1;

	yi_json_start(&json, text, len);
	for (;;) {
		kind = yi_json_next(&json, &item);
		if (kind == YI_JSON_DONE)
			return 0;
		if (kind == YI_JSON_BAD)
			return -EINVAL;
		if (kind == YI_JSON_KEY && json.depth == 1)
			memory = is(&item, "memory");
		if (kind == YI_JSON_KEY && json.depth == 2 && memory) {
			class = -1;
			for (int i = 0; i < YI_MEM_CLASSES; i++)
				if (is(&item, yi_mem_class_name((enum yi_mem_class)i)))
					class = i;
		}
		if (kind == YI_JSON_KEY && json.depth == 3)
			peak = is(&item, "peak_bytes");
		if (kind == YI_JSON_NUMBER && json.depth == 3 && memory && peak && class >= 0 &&
		    item.number >= 0 && item.number < 0x1p63)
			info->peak[class] = (uint64_t)item.number;
	}
}

static int read_measured(struct info *info)
{
	enum { ROOM = 1 << 20 };
	FILE *in = fopen(info->measured, "re");
	char *text = yi_mem_alloc(YI_MEM_OTHER, ROOM);
	size_t len = 0;
	int error = 0;

	if (in && text)
		len = fread(text, 1, ROOM, in);
	if (!in || !text || ferror(in))
		error = yi_error_set(&info->error, YI_EXIT_TROUBLE, -EIO, "%s: cannot be read: %s",
				     info->measured, strerror(errno));
	else if (len == ROOM || read_peaks(info, text, len))
		error = yi_error_set(&info->error, YI_EXIT_USAGE, -EINVAL,
				     "%s: not a file that --stats wrote", info->measured);
	if (in)
		fclose(in);
	yi_mem_free(YI_MEM_OTHER, text);
	return error;
}

static void print_memory(const struct info *info)
{
	const enum yi_mem_class classes[] = {YI_MEM_WEIGHTS, YI_MEM_KV, YI_MEM_ACTIVATIONS,
					     YI_MEM_TOKENIZER};
	uint64_t sum = 0;

	printf("memory       for %u session%s of %u tokens, keys and values in %s, batches of %u\n",
	       info->sessions, info->sessions == 1 ? "" : "s", info->context,
	       yi_type_find(info->kv_type)->name, info->batch);
	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
		const enum yi_mem_class class = classes[i];

		sum += info->predicted[class];
		printf("  %-12s %12.2f MiB", yi_mem_class_name(class), mib(info->predicted[class]));
		if (info->measured && info->peak[class])
			printf("   measured %12.2f MiB, %.2f of it", mib(info->peak[class]),
			       (double)info->peak[class] / (double)info->predicted[class]);
		else if (info->measured)
			printf("   measured %12s", class == YI_MEM_WEIGHTS ? "mapped" : "none");
		putchar('\n');
	}
	printf("  %-12s %12.2f MiB, %" PRIu64 " bytes of keys and values a token\n", "sum",
	       mib(sum), yi_kv_bytes_per_token(&info->model->hp, info->kv_type));
}

/* Smaller blocks come from spans of slots, whatever TIERMALLOC_POOLS says. */
#define POOLED_ABOVE 65536

/*
 * Whole sessions reserve 2 blocks per layer; rows of logits are allocated and freed in each step.
 */
static void print_pools(const struct info *info)
{
	const struct yi_hparams *hp = &info->model->hp;
	const uint64_t block =
		yi_kv_bytes_per_token(hp, info->kv_type) / (2 * hp->n_layer) * info->context;
	const uint64_t row = (uint64_t)hp->n_vocab * sizeof(float);

	if (block <= POOLED_ABOVE) {
		printf("pools        none: %" PRIu64
		       " bytes of keys or values of a layer, pools are for "
		       "blocks above 64 KiB\n",
		       block);
		return;
	}
	printf("pools        TIERMALLOC_POOLS=%" PRIu64 "*%" PRIu64 "@session", block,
	       (uint64_t)2 * hp->n_layer * info->sessions);
	/* Row of logits of a single answer; several answers share one longer block. */
	if (row > POOLED_ABOVE && info->sessions == 1)
		printf(",%" PRIu64 "*1@temporary", row);
	printf("   (with --kv-alloc full -c %u)\n", info->context);
}

static int work(struct info *info)
{
	int error;

	info->model = yi_model_load(info->path, YI_LOAD_MMAP, YI_POPULATE_NONE, &info->error);
	if (!info->model)
		return -EINVAL;
	info->vocab = yi_vocab_load(info->model->file, info->model->hp.n_vocab, &info->error);
	if (!info->vocab)
		return -EINVAL;
	error = info->check ? yi_model_check_data(info->model, &info->error) : 0;
	if (!error && info->measured)
		error = read_measured(info);
	if (error)
		return error;
	if (!info->context)
		info->context =
			info->model->hp.n_ctx_train < 4096 ? info->model->hp.n_ctx_train : 4096;
	print_file(info);
	print_shape(info);
	print_types(info);
	predict(info);
	print_memory(info);
	print_pools(info);
	if (info->check)
		puts("check        every parameter is a finite number");
	errno = EIO;
	return fflush(stdout) || ferror(stdout)
		       ? yi_error_set(&info->error, YI_EXIT_TROUBLE, -EIO,
				      "the answer: cannot be written: %s", strerror(errno))
		       : 0;
}

int yi_info_main(int argc, char **argv)
{
	struct info info = {.sessions = 1, .batch = 64, .kv_type = YI_F16};
	int error = parse(&info, argc, argv);

	if (!error)
		error = work(&info);
	if (error)
		fprintf(stderr, "yi-coder-run: %s\n", info.error.text);
	yi_vocab_free(info.vocab);
	yi_model_free(info.model);
	return error ? info.error.status : 0;
}
