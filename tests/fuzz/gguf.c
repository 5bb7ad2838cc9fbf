/* SPDX-License-Identifier: MIT */
/* build: libyi.a libyiv3.a -lm -lpthread */
/*
 * Model files under mutation: whatever the bytes, a file is refused with one line and status 3, or
 * it loads, and then its vocabulary and its first tokens can be evaluated.  No crash, no more than
 * 64 MiB.  The entry is libFuzzer's; by itself this program mutates a few good files by a seed,
 * briefly, or for 15 minutes with TM_LONG.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "tools/runner/forward.h"
#include "tools/runner/make_model.h"
#include "tools/runner/mem.h"
#include "tools/runner/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t inputs, loaded;

static void must(bool holds, const char *what, const char *detail)
{
	if (holds)
		return;
	fprintf(stderr, "input %llu: %s: %s\n", (unsigned long long)inputs, what, detail);
	abort();
}

/* A model that was taken must be one that runs. */
static void run_model(const struct yi_model *model, const struct yi_vocab *vocab)
{
	const struct yi_kv_config config = {model, YI_F16, YI_KV_GROW, 8, NULL};
	struct yi_workers *workers = yi_workers_create(1);
	struct yi_forward *forward = yi_forward_create(model, workers, YI_FAST);
	struct yi_kv *kv = yi_kv_create(&config);
	float *logits = yi_mem_array(YI_MEM_OTHER, model->hp.n_vocab, sizeof(*logits));
	const struct yi_item items[2] = {{kv, 0, NULL}, {kv, model->hp.n_vocab - 1, logits}};
	struct yi_ids ids = {0};

	must(workers && forward && kv && logits, "no memory", "");
	yi_forward_eval(forward, items, 2);
	yi_tokenizer_encode(vocab, "Hello <|im_end|>\xf0\x9f\x98\x80 1", 22,
			    YI_TOKENIZE_ADD_SPECIAL | YI_TOKENIZE_PARSE_SPECIAL, &ids);
	yi_ids_clear(&ids);
	yi_mem_free(YI_MEM_OTHER, logits);
	yi_kv_free(kv);
	yi_forward_free(forward);
	yi_workers_free(workers);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct yi_error error = {0};
	struct yi_vocab *vocab = NULL;
	struct yi_model *model;
	char path[64];
	int fd = memfd_create("gguf", MFD_CLOEXEC);

	must(fd >= 0 && write(fd, data, size) == (ssize_t)size, "no memory file", "");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	inputs++;
	model = yi_model_load(path, inputs & 1 ? YI_LOAD_MMAP : YI_LOAD_READ, YI_POPULATE_NONE,
			      &error);
	if (model)
		vocab = yi_vocab_load(model->file, model->hp.n_vocab, &error);
	if (vocab) {
		loaded++;
		run_model(model, vocab);
	} else {
		must(error.status == 3 && strstr(error.text, " at offset "), "bad refusal",
		     error.text);
		must(!strchr(error.text, '\n') && strstr(error.text, path), "bad line", error.text);
	}
	yi_vocab_free(vocab);
	yi_model_free(model);
	close(fd);
	return 0;
}

#ifndef YI_LIBFUZZER

static uint64_t state = 1;

static uint64_t roll(uint64_t below)
{
	uint64_t z = state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return (z ^ z >> 31) % below;
}

#define SEEDS 4
#define ROOM (1 << 20)

struct seed {
	uint8_t *bytes;
	size_t size, head; /* head: about where metadata ends */
};

static void make_seed(struct seed *seed, uint32_t number)
{
	static const enum yi_type types[SEEDS] = {YI_Q8_0, YI_F32, YI_Q4_1, YI_BF16};
	struct yi_make_model make = {.type = types[number], .seed = number};
	struct yi_error error = {0};
	FILE *in;

	make.shape = *yi_make_model_shape("tiny");
	make.shape.n_layer = 1;
	make.shape.n_embd = 32;
	make.shape.n_head = 2;
	make.shape.n_head_kv = 1;
	make.shape.n_ff = 64;
	make.shape.n_vocab = 512;
	make.shape.byte_level = number & 1;
	make.shape.tied = number == 2;
	make.shape.rope_freqs = number == 3;
	must(yi_make_model(&make, "seed.gguf", &error) == 0, "no seed", error.text);
	in = fopen("seed.gguf", "rb");
	seed->bytes = malloc(ROOM);
	must(in && seed->bytes, "no seed", "");
	seed->size = fread(seed->bytes, 1, ROOM, in);
	fclose(in);
	/* The first tensor's name starts the descriptions. */
	seed->head = (size_t)((uint8_t *)memmem(seed->bytes, seed->size, "token_embd", 10) -
			      seed->bytes) +
		     1000;
}

/* Numbers at which arithmetic goes wrong. */
static uint64_t odd_number(void)
{
	static const uint64_t odd[] = {0,           1,
				       2,           3,
				       9,           255,
				       256,         512,
				       513,         0x7fffffff,
				       0x80000000,  0xffffffff,
				       0x100000000, UINT64_C(1) << 61,
				       INT64_MAX,   UINT64_C(1) << 63,
				       UINT64_MAX};
	const uint64_t number = odd[roll(sizeof(odd) / sizeof(odd[0]))];

	return roll(3) ? number : number + roll(5) - 2;
}

static size_t mutate(uint8_t *bytes, size_t size, size_t head)
{
	const size_t most = roll(8) ? (head < size ? head : size) : size;
	const size_t at = roll(most);
	const uint64_t number = odd_number();
	size_t n = 1 + roll(40), to;

	switch (roll(8)) {
	case 0: bytes[at] ^= (uint8_t)(1 << roll(8)); break;
	case 1: bytes[at] = (uint8_t)roll(256); break;
	case 2:
		if (at + 4 <= size)
			memcpy(bytes + at, &number, 4);
		break;
	case 3:
		if (at + 8 <= size)
			memcpy(bytes + at, &number, 8);
		break;
	case 4: /* cut off */ return at;
	case 5: /* take out */
		n = at + n < size ? n : size - at;
		memmove(bytes + at, bytes + at + n, size - at - n);
		return size - n;
	case 6: /* put in twice */
		if (at + n <= size && size + n <= ROOM) {
			memmove(bytes + at + n, bytes + at, size - at);
			return size + n;
		}
		break;
	default: /* copy elsewhere */
		to = roll(most);
		n = at + n < size ? n : size - at;
		n = to + n < size ? n : size - to;
		memmove(bytes + to, bytes + at, n);
		break;
	}
	return size;
}

/* A number field of the metadata: the eight bytes in front of a known name. */
static void spoil_near(uint8_t *bytes, size_t size)
{
	static const char *const names[] = {"llama.", "tokenizer.", "general.", "blk.0.",
					    "output", "token_embd", "attn",     "ffn"};
	const char *name = names[roll(sizeof(names) / sizeof(names[0]))];
	uint8_t *at = bytes;
	const uint64_t number = odd_number();

	if (size == 0)
		return;
	for (uint64_t skip = roll(12) + 1; at && skip; skip--)
		at = memmem(at + 1, size - (size_t)(at + 1 - bytes), name, strlen(name));
	if (!at || at < bytes + 8)
		return;
	at += (int64_t)roll(100) - 8;
	if (at >= bytes && at + 8 <= bytes + size)
		memcpy(at, &number, roll(2) ? 4 : 8);
}

int main(void)
{
	const double limit_s = getenv("TM_LONG") ? 900 : 8;
	const time_t start = time(NULL);
	struct seed seeds[SEEDS];
	uint8_t *bytes = malloc(ROOM);
	struct rusage usage;

	for (uint32_t i = 0; i < SEEDS; i++) {
		make_seed(&seeds[i], i);
		LLVMFuzzerTestOneInput(seeds[i].bytes, seeds[i].size);
	}
	must(bytes && loaded == SEEDS, "a good file was refused", "");
	while (inputs < 3000 ||
	       (inputs < 20000 || limit_s > 100 ? difftime(time(NULL), start) < limit_s : 0)) {
		const struct seed *seed = &seeds[roll(SEEDS)];
		size_t size = seed->size;

		state = inputs; /* so that one input can be found again */
		memcpy(bytes, seed->bytes, size);
		for (uint64_t n = 1 + roll(4); n; n--) {
			if (roll(3) == 0)
				spoil_near(bytes, size);
			else if (size)
				size = mutate(bytes, size, seed->head);
		}
		LLVMFuzzerTestOneInput(bytes, size);
	}
	getrusage(RUSAGE_SELF, &usage);
	printf("%llu inputs, %llu loaded, peak %ld KiB\n", (unsigned long long)inputs,
	       (unsigned long long)loaded, usage.ru_maxrss);
#ifndef __SANITIZE_ADDRESS__
	must(usage.ru_maxrss <= 64 << 10, "too much memory", "");
#endif
	for (uint32_t i = 0; i < SEEDS; i++)
		free(seeds[i].bytes);
	free(bytes);
	return 0;
}

#endif
