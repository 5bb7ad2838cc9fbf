/* SPDX-License-Identifier: MIT */
/* See model_check.h. */
#include "tools/runner/model_check.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/runner/half.h"

/* Checks an array that may be absent; if present it must have one element per token. */
static int check_length(const struct yi_gguf *file, const char *key, enum yi_gguf_type type,
			uint32_t n_vocab, struct yi_error *error)
{
	const struct yi_gguf_value *array = NULL;
	int code = yi_gguf_get_array(file, key, type, &array, error);

	if (code)
		return code;
	if (array->count != n_vocab)
		return yi_gguf_refuse_value(file, array, error, "does not fit the %u tokens",
					    n_vocab);
	return 0;
}

static int check_ids(const struct yi_gguf *file, uint32_t n_vocab, struct yi_error *error)
{
	static const char *const keys[] = {
		"tokenizer.ggml.bos_token_id",       "tokenizer.ggml.eos_token_id",
		"tokenizer.ggml.unknown_token_id",   "tokenizer.ggml.padding_token_id",
		"tokenizer.ggml.eot_token_id",       "tokenizer.ggml.eom_token_id",
		"tokenizer.ggml.seperator_token_id",
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		uint32_t id = 0;
		int code = yi_gguf_get_u32(file, keys[i], &id, error);

		if (code && code != -ENOENT)
			return code;
		/* Writers store -1 as u32 if there is no such token. */
		if (id >= n_vocab && id != UINT32_MAX)
			return yi_gguf_refuse_value(file, yi_gguf_find(file, keys[i]), error,
						    "is not below the %u tokens", n_vocab);
	}
	return 0;
}

/* The byte that a token "<0xXX>" stands for; -1: not such a token. */
static int byte_of(struct yi_text text)
{
	static const char digits[] = "0123456789ABCDEF";
	const char *high, *low;

	if (text.len != 6 || memcmp(text.bytes, "<0x", 3) || text.bytes[5] != '>')
		return -1;
	high = text.bytes[3] ? strchr(digits, text.bytes[3]) : NULL;
	low = text.bytes[4] ? strchr(digits, text.bytes[4]) : NULL;
	return high && low ? (int)(high - digits) * 16 + (int)(low - digits) : -1;
}

/* A vocabulary with byte fallback needs a token for every byte. */
static int check_bytes(const struct yi_gguf *file, const struct yi_gguf_value *tokens,
		       struct yi_error *error)
{
	bool seen[256] = {false};
	const uint8_t *at = NULL;
	struct yi_text text;

	while (yi_gguf_next_text(tokens, &at, &text)) {
		const int byte = byte_of(text);

		if (byte >= 0)
			seen[byte] = true;
	}
	for (int i = 0; i < 256; i++)
		if (!seen[i])
			return yi_gguf_refuse_value(file, tokens, error,
						    "has no token for byte 0x%02X", (unsigned)i);
	return 0;
}

int yi_model_check_vocab(const struct yi_gguf *file, uint32_t *ret_n_vocab, struct yi_error *error)
{
	const struct yi_gguf_value *tokens = NULL;
	struct yi_text model = {"", 0};
	uint32_t n_vocab, declared;
	int code = yi_gguf_get_array(file, "tokenizer.ggml.tokens", YI_GGUF_STRING, &tokens, error);

	if (code == -ENOENT)
		return yi_gguf_refuse(file, "tokenizer.ggml.tokens", error, "is missing");
	if (code)
		return code;
	if (tokens->count == 0 || tokens->count > 1 << 24)
		return yi_gguf_refuse_value(file, tokens, error, "is not from 1 to %d", 1 << 24);
	n_vocab = (uint32_t)tokens->count;
	declared = n_vocab;
	code = yi_gguf_get_u32(file, "llama.vocab_size", &declared, error);
	if (code && code != -ENOENT)
		return code;
	if (declared != n_vocab)
		return yi_gguf_refuse_value(file, yi_gguf_find(file, "llama.vocab_size"), error,
					    "is not the number of tokens, %u", n_vocab);
	code = yi_gguf_get_text(file, "tokenizer.ggml.model", &model, error);
	if (code == -ENOENT)
		return yi_gguf_refuse(file, "tokenizer.ggml.model", error, "is missing");
	if (code)
		return code;
	code = check_length(file, "tokenizer.ggml.scores", YI_GGUF_F32, n_vocab, error);
	if (code && code != -ENOENT)
		return code;
	code = check_length(file, "tokenizer.ggml.token_type", YI_GGUF_I32, n_vocab, error);
	if (code && code != -ENOENT)
		return code;
	code = check_ids(file, n_vocab, error);
	if (!code && model.len == 5 && memcmp(model.bytes, "llama", 5) == 0)
		code = check_bytes(file, tokens, error);
	if (!code)
		*ret_n_vocab = n_vocab;
	return code;
}

/* Places of half-float scales in a block. */
struct scales {
	uint8_t count, first, second;
};

static const struct scales scales_of[YI_TYPE_LIMIT] = {
	[YI_Q4_0] = {1, 0, 0},   [YI_Q4_1] = {2, 0, 2}, [YI_Q5_0] = {1, 0, 0},
	[YI_Q5_1] = {2, 0, 2},   [YI_Q8_0] = {1, 0, 0}, [YI_Q2_K] = {2, 80, 82},
	[YI_Q3_K] = {1, 108, 0}, [YI_Q4_K] = {2, 0, 2}, [YI_Q5_K] = {2, 0, 2},
	[YI_Q6_K] = {1, 208, 0}, [YI_F16] = {1, 0, 0},
};

static bool half_is_finite(const uint8_t *at)
{
	return (at[1] & 0x7c) != 0x7c;
}

/* The first block of a tensor that is not finite, as its distance from the start; UINT64_MAX. */
static uint64_t find_nonfinite(const uint8_t *data, enum yi_type type, uint64_t bytes)
{
	const struct scales *scales = &scales_of[type];
	const uint32_t step = yi_type_find(type)->block_bytes;

	for (uint64_t at = 0; at < bytes; at += step) {
		const uint8_t *block = data + at;
		bool ok;

		if (type == YI_F32)
			ok = (block[3] & 0x7f) != 0x7f || !(block[2] & 0x80);
		else if (type == YI_BF16)
			ok = (block[1] & 0x7f) != 0x7f || !(block[0] & 0x80);
		else
			ok = half_is_finite(block + scales->first) &&
			     (scales->count < 2 || half_is_finite(block + scales->second));
		if (!ok)
			return at;
	}
	return UINT64_MAX;
}

int yi_model_check_data(const struct yi_model *model, struct yi_error *error)
{
	const struct yi_gguf *file = model->file;
	const uint64_t skip = model->load == YI_LOAD_MMAP ? 0 : file->data_offset;

	for (uint32_t i = 0; i < file->n_tensors; i++) {
		const struct yi_gguf_tensor *tensor = &file->tensors[i];
		const uint64_t at = find_nonfinite(model->data + (tensor->offset - skip),
						   tensor->type, tensor->bytes);

		if (at != UINT64_MAX)
			return yi_error_set(error, YI_EXIT_REFUSED, -EINVAL,
					    "%s: %s: %s parameter or scale is infinite or not a "
					    "number at offset %" PRIu64,
					    file->path, tensor->name,
					    yi_type_find(tensor->type)->name, tensor->offset + at);
	}
	return 0;
}
