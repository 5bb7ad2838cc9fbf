/* SPDX-License-Identifier: MIT */
/* See make_model.h. */
#include "tools/runner/make_model.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/runner/gguf.h"
#include "tools/runner/mem.h"

#define ALIGN 32
#define BUFFER_BYTES (1 << 20)

static const struct yi_shape shapes[] = {
	{"yi-coder-1.5b", 24, 2048, 16, 16, 5504, 64000, 131072, 1e7f, false, false, false},
	{"smollm2-135m", 30, 576, 9, 3, 1536, 49152, 8192, 1e5f, true, false, true},
	{"tiny", 2, 256, 4, 2, 512, 1024, 4096, 1e4f, false, false, false},
};

const struct yi_shape *yi_make_model_shape(const char *name)
{
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		if (strcmp(shapes[i].name, name) == 0)
			return &shapes[i];
	return NULL;
}

void yi_make_bytes(struct yi_make_writer *writer, const void *bytes, size_t n)
{
	if (fwrite(bytes, 1, n, writer->out) != n && !writer->error)
		writer->error = errno;
	writer->at += n;
}

void yi_make_text(struct yi_make_writer *writer, const char *text, size_t n)
{
	const uint64_t len = n;

	yi_make_bytes(writer, &len, sizeof(len));
	yi_make_bytes(writer, text, n);
}

static void make_key(struct yi_make_writer *writer, const char *key, uint32_t type)
{
	yi_make_text(writer, key, strlen(key));
	yi_make_bytes(writer, &type, sizeof(type));
	writer->n_values++;
}

void yi_make_value_text(struct yi_make_writer *writer, const char *key, const char *text)
{
	make_key(writer, key, YI_GGUF_STRING);
	yi_make_text(writer, text, strlen(text));
}

void yi_make_value_u32(struct yi_make_writer *writer, const char *key, uint32_t number)
{
	make_key(writer, key, YI_GGUF_U32);
	yi_make_bytes(writer, &number, sizeof(number));
}

void yi_make_value_f32(struct yi_make_writer *writer, const char *key, float number)
{
	make_key(writer, key, YI_GGUF_F32);
	yi_make_bytes(writer, &number, sizeof(number));
}

void yi_make_value_bool(struct yi_make_writer *writer, const char *key, bool truth)
{
	const uint8_t byte = truth;

	make_key(writer, key, YI_GGUF_BOOL);
	yi_make_bytes(writer, &byte, sizeof(byte));
}

void yi_make_array(struct yi_make_writer *writer, const char *key, uint32_t type, uint64_t count)
{
	make_key(writer, key, YI_GGUF_ARRAY);
	yi_make_bytes(writer, &type, sizeof(type));
	yi_make_bytes(writer, &count, sizeof(count));
}

enum role { EMBD, NORM, FREQS, OUTPUT, ATTN_V, FFN_DOWN, OTHER };

/* One tensor of the file, in the order of the file. */
struct plan {
	char name[64];
	enum yi_type type;
	enum role role;
	uint32_t n_in, n_out; /* n_out 0: a vector */
	uint64_t bytes;
};

/* The type that quantisers fall back to for rows that don't fill blocks of 256. */
static enum yi_type fit(enum yi_type type, uint32_t n_in)
{
	if (n_in % yi_type_find(type)->block == 0)
		return type;
	if (n_in % 32)
		return YI_F16;
	switch (type) {
	case YI_Q5_K: return YI_Q5_1;
	case YI_Q6_K: return YI_Q8_0;
	case YI_Q4_K: return YI_Q5_0;
	default: return YI_Q4_0;
	}
}

/* Layers whose matrices get more bits in a mix: the first and last eighth, a third between. */
static bool more_bits(uint32_t layer, uint32_t n_layer)
{
	return layer < n_layer / 8 || layer >= 7 * n_layer / 8 || (layer - n_layer / 8) % 3 == 2;
}

static enum yi_type type_of(const struct yi_make_model *make, enum role role, uint32_t layer,
			    uint32_t n_in)
{
	const enum yi_type type = make->type;
	const bool whole = type == YI_F32 || type == YI_F16 || type == YI_BF16 || type == YI_Q8_0;

	if (role == NORM || role == FREQS)
		return YI_F32;
	if (whole)
		return fit(type, n_in);
	if (role == OUTPUT || (role == EMBD && make->shape.tied))
		return fit(YI_Q6_K, n_in);
	if (make->mixed && (role == ATTN_V || role == FFN_DOWN) &&
	    more_bits(layer, make->shape.n_layer))
		return fit(YI_Q6_K, n_in);
	return fit(type, n_in);
}

struct maker {
	const struct yi_make_model *make;
	struct yi_make_writer writer;
	struct plan *plans;
	uint32_t n_plans;
};

static void plan(struct maker *maker, const char *name, enum role role, uint32_t layer,
		 uint32_t n_in, uint32_t n_out)
{
	struct plan *plan = &maker->plans[maker->n_plans++];
	const struct yi_type_traits *traits;

	if (role == EMBD || role == OUTPUT || role == FREQS || layer == UINT32_MAX)
		snprintf(plan->name, sizeof(plan->name), "%s.weight", name);
	else
		snprintf(plan->name, sizeof(plan->name), "blk.%u.%s.weight", layer, name);
	plan->role = role;
	plan->n_in = n_in;
	plan->n_out = n_out;
	plan->type = type_of(maker->make, role, layer, n_in);
	traits = yi_type_find(plan->type);
	plan->bytes = (uint64_t)n_in / traits->block * traits->block_bytes * (n_out ? n_out : 1);
}

static void plan_tensors(struct maker *maker)
{
	const struct yi_shape *s = &maker->make->shape;
	const uint32_t kv_dim = s->n_embd / s->n_head * s->n_head_kv;

	plan(maker, "token_embd", EMBD, UINT32_MAX, s->n_embd, s->n_vocab);
	if (s->rope_freqs)
		plan(maker, "rope_freqs", FREQS, UINT32_MAX, s->n_embd / s->n_head / 2, 0);
	for (uint32_t i = 0; i < s->n_layer; i++) {
		plan(maker, "attn_norm", NORM, i, s->n_embd, 0);
		plan(maker, "attn_q", OTHER, i, s->n_embd, s->n_embd);
		plan(maker, "attn_k", OTHER, i, s->n_embd, kv_dim);
		plan(maker, "attn_v", ATTN_V, i, s->n_embd, kv_dim);
		plan(maker, "attn_output", OTHER, i, s->n_embd, s->n_embd);
		plan(maker, "ffn_norm", NORM, i, s->n_embd, 0);
		plan(maker, "ffn_gate", OTHER, i, s->n_embd, s->n_ff);
		plan(maker, "ffn_up", OTHER, i, s->n_embd, s->n_ff);
		plan(maker, "ffn_down", FFN_DOWN, i, s->n_ff, s->n_embd);
	}
	plan(maker, "output_norm", NORM, UINT32_MAX, s->n_embd, 0);
	if (!s->tied)
		plan(maker, "output", OUTPUT, UINT32_MAX, s->n_embd, s->n_vocab);
}

static int write_values(struct maker *maker)
{
	const struct yi_shape *s = &maker->make->shape;
	struct yi_make_writer *writer = &maker->writer;

	yi_make_value_text(writer, "general.architecture", "llama");
	yi_make_value_text(writer, "general.name", s->name);
	yi_make_value_u32(writer, "general.quantization_version", 2);
	yi_make_value_u32(writer, "llama.vocab_size", s->n_vocab);
	yi_make_value_u32(writer, "llama.context_length", s->n_ctx);
	yi_make_value_u32(writer, "llama.embedding_length", s->n_embd);
	yi_make_value_u32(writer, "llama.block_count", s->n_layer);
	yi_make_value_u32(writer, "llama.feed_forward_length", s->n_ff);
	yi_make_value_u32(writer, "llama.attention.head_count", s->n_head);
	yi_make_value_u32(writer, "llama.attention.head_count_kv", s->n_head_kv);
	yi_make_value_u32(writer, "llama.rope.dimension_count", s->n_embd / s->n_head);
	yi_make_value_f32(writer, "llama.rope.freq_base", s->rope_base);
	yi_make_value_f32(writer, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
	return yi_make_vocab(writer, s);
}

static void write_plan(struct maker *maker)
{
	uint64_t offset = 0;

	for (uint32_t i = 0; i < maker->n_plans; i++) {
		const struct plan *plan = &maker->plans[i];
		const uint32_t n_dims = plan->n_out ? 2 : 1, type = plan->type;
		const uint64_t ne[2] = {plan->n_in, plan->n_out};

		yi_make_text(&maker->writer, plan->name, strlen(plan->name));
		yi_make_bytes(&maker->writer, &n_dims, sizeof(n_dims));
		yi_make_bytes(&maker->writer, ne, n_dims * sizeof(ne[0]));
		yi_make_bytes(&maker->writer, &type, sizeof(type));
		yi_make_bytes(&maker->writer, &offset, sizeof(offset));
		offset += (plan->bytes + ALIGN - 1) / ALIGN * ALIGN;
	}
}

static void pad(struct yi_make_writer *writer)
{
	static const uint8_t zeros[ALIGN];

	yi_make_bytes(writer, zeros, (size_t)(-writer->at & (ALIGN - 1)));
}

/* Deviation of a matrix's weights: results keep the size of what goes in. */
static float sigma_of(const struct plan *plan)
{
	if (plan->role == EMBD)
		return 1.0f;
	return (plan->role == OUTPUT ? 2.0f : 1.0f) / sqrtf((float)plan->n_in);
}

static void fill(const struct plan *plan, uint8_t *buffer, size_t bytes,
		 struct yi_make_random *random)
{
	yi_make_weights(plan->type, buffer, bytes, sigma_of(plan), random);
	/* Vectors are factors about 1. */
	for (size_t at = 0; plan->n_out == 0 && at < bytes; at += sizeof(float)) {
		float value;

		memcpy(&value, buffer + at, sizeof(value));
		value = 1.0f + fabsf(value);
		memcpy(buffer + at, &value, sizeof(value));
	}
}

static int write_data(struct maker *maker)
{
	uint8_t *buffer = yi_mem_alloc(YI_MEM_OTHER, BUFFER_BYTES);

	if (!buffer)
		return -ENOMEM;
	pad(&maker->writer);
	for (uint32_t i = 0; i < maker->n_plans; i++) {
		const struct plan *plan = &maker->plans[i];
		const uint32_t block = yi_type_find(plan->type)->block_bytes;
		const uint64_t most = BUFFER_BYTES / block * block;
		struct yi_make_random random = {maker->make->seed * 0x2545f4914f6cdd1d + i};

		for (uint64_t left = plan->bytes; left;) {
			const size_t bytes = left < most ? left : most;

			fill(plan, buffer, bytes, &random);
			yi_make_bytes(&maker->writer, buffer, bytes);
			left -= bytes;
		}
		pad(&maker->writer);
		if (maker->writer.error)
			break;
	}
	yi_mem_free(YI_MEM_OTHER, buffer);
	return 0;
}

static int write_file(struct maker *maker)
{
	const uint32_t version = 3;
	uint64_t counts[2];
	int error;

	yi_make_bytes(&maker->writer, "GGUF", 4);
	yi_make_bytes(&maker->writer, &version, sizeof(version));
	counts[0] = maker->n_plans;
	counts[1] = 0;
	yi_make_bytes(&maker->writer, counts, sizeof(counts));
	error = write_values(maker);
	if (error)
		return error;
	write_plan(maker);
	error = write_data(maker);
	if (error)
		return error;
	/* Now that they are counted: */
	counts[1] = maker->writer.n_values;
	if (fseek(maker->writer.out, 8, SEEK_SET))
		return -errno;
	fwrite(counts, sizeof(counts), 1, maker->writer.out);
	if (fflush(maker->writer.out) && !maker->writer.error)
		maker->writer.error = errno;
	return -maker->writer.error;
}

int yi_make_model(const struct yi_make_model *make, const char *path, struct yi_error *error)
{
	struct maker maker = {.make = make};
	struct stat st;
	int code = -ENOMEM;

	maker.plans = yi_mem_array(YI_MEM_OTHER, 4 + make->shape.n_layer * 9, sizeof(*maker.plans));
	if (maker.plans) {
		plan_tensors(&maker);
		maker.writer.out = fopen(path, "wbe");
		code = maker.writer.out ? write_file(&maker) : -errno;
	}
	if (maker.writer.out && fclose(maker.writer.out) && !code)
		code = -errno;
	yi_mem_free(YI_MEM_OTHER, maker.plans);
	if (code) {
		/*
		 * Something that was opened but is not a regular file (/dev/full) must not be
		 * removed.
		 */
		if (maker.writer.out && lstat(path, &st) == 0 && S_ISREG(st.st_mode))
			unlink(path);
		yi_error_set(error, YI_EXIT_TROUBLE, code, "%s: cannot be written: %s", path,
			     strerror(-code));
	}
	return code;
}
