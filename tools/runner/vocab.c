/* SPDX-License-Identifier: MIT */
#include "tools/runner/vocab.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/runner/mem.h"

#define KEY_MODEL "tokenizer.ggml.model"
#define KEY_PRE "tokenizer.ggml.pre"
#define KEY_TOKENS "tokenizer.ggml.tokens"
#define KEY_SCORES "tokenizer.ggml.scores"
#define KEY_TYPES "tokenizer.ggml.token_type"
#define KEY_MERGES "tokenizer.ggml.merges"

/* Longest token accepted; real ones stay below 1 KiB. */
#define MAX_TEXT 65535u
/* Ranks must stay exact in a float. */
#define MAX_MERGES (1u << 24)
/* Name of a token without a text, as llama.cpp calls it. */
#define EMPTY_FORMAT "[EMPTY_%u]"
#define EMPTY_BYTES 24

static uint64_t hash_bytes(uint64_t hash, const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (uint8_t)bytes[i]) * 0x100000001b3u;
	return hash;
}

static uint32_t hash_text(const char *bytes, size_t len)
{
	uint64_t hash = hash_bytes(0xcbf29ce484222325u, bytes, len);

	return (uint32_t)(hash ^ hash >> 32);
}

/* Hashes the two lengths separately: "ab" + "c" is another merge than "a" + "bc". */
static uint32_t hash_pair(const char *text, size_t left, size_t right)
{
	uint64_t hash = hash_bytes(0xcbf29ce484222325u ^ left, text, left + right);

	return (uint32_t)(hash ^ hash >> 32);
}

/* Slots for a table of `count` names, at most half full. */
static uint32_t slots_for(uint64_t count)
{
	uint32_t slots = 16;

	while (slots < 2 * count)
		slots *= 2;
	return slots;
}

static int no_memory(struct yi_error *error)
{
	return yi_error_set(error, YI_EXIT_TROUBLE, -ENOMEM, "no memory for the tokenizer");
}

const char *yi_vocab_text(const struct yi_vocab *vocab, uint32_t id, size_t *ret_len)
{
	*ret_len = vocab->text_at[id + 1] - vocab->text_at[id];
	return vocab->texts + vocab->text_at[id];
}

/* The slot that holds the text, or the empty one where it belongs. */
static uint32_t *slot_of(const struct yi_vocab *vocab, const char *text, size_t len)
{
	uint32_t at = hash_text(text, len) & vocab->slot_mask;

	for (;; at = (at + 1) & vocab->slot_mask) {
		uint32_t *slot = &vocab->slots[at];
		const char *other;
		size_t other_len;

		if (!*slot)
			return slot;
		other = yi_vocab_text(vocab, *slot - 1, &other_len);
		if (other_len == len && memcmp(other, text, len) == 0)
			return slot;
	}
}

int32_t yi_vocab_find(const struct yi_vocab *vocab, const char *text, size_t len)
{
	return (int32_t)*slot_of(vocab, text, len) - 1;
}

static uint32_t *merge_slot_of(const struct yi_vocab *vocab, const char *text, size_t left,
			       size_t right)
{
	uint32_t at = hash_pair(text, left, right) & vocab->merge_mask;

	for (;; at = (at + 1) & vocab->merge_mask) {
		uint32_t *slot = &vocab->merge_slots[at];
		const struct yi_merge *merge;

		if (!*slot)
			return slot;
		merge = &vocab->merges[*slot - 1];
		if (merge->left == left && merge->right == right &&
		    memcmp(vocab->merge_texts + merge->at, text, left + right) == 0)
			return slot;
	}
}

int32_t yi_vocab_rank(const struct yi_vocab *vocab, const char *text, size_t left, size_t right)
{
	uint32_t slot = *merge_slot_of(vocab, text, left, right);

	return slot ? (int32_t)vocab->merges[slot - 1].rank : -1;
}

/* Copies the texts one after the other and indexes them. */
static int load_texts(struct yi_vocab *vocab, const struct yi_gguf *file,
		      const struct yi_gguf_value *tokens, struct yi_error *error)
{
	uint64_t n = vocab->n_tokens, total = 0;
	const uint8_t *at = NULL;
	struct yi_text text;
	char empty[EMPTY_BYTES];

	while (yi_gguf_next_text(tokens, &at, &text))
		total += text.len ? text.len : EMPTY_BYTES;
	if (total > UINT32_MAX)
		return yi_gguf_refuse_value(file, tokens, error, "texts of more than 4 GiB");
	vocab->slot_mask = slots_for(n) - 1;
	vocab->texts = yi_mem_alloc(YI_MEM_TOKENIZER, total);
	vocab->text_at = yi_mem_array(YI_MEM_TOKENIZER, n + 1, sizeof(*vocab->text_at));
	vocab->slots = yi_mem_zeroed(YI_MEM_TOKENIZER,
				     ((size_t)vocab->slot_mask + 1) * sizeof(*vocab->slots));
	if (!vocab->texts || !vocab->text_at || !vocab->slots)
		return no_memory(error);

	vocab->text_at[0] = 0;
	at = NULL;
	for (uint32_t id = 0; id < n && yi_gguf_next_text(tokens, &at, &text); id++) {
		uint32_t *slot;

		if (text.len > MAX_TEXT)
			return yi_gguf_refuse_value(file, tokens, error,
						    "token %u has %zu bytes, at most %u", id,
						    text.len, MAX_TEXT);
		if (!text.len) {
			text.len = (size_t)snprintf(empty, sizeof(empty), EMPTY_FORMAT, id);
			text.bytes = empty;
		}
		memcpy(vocab->texts + vocab->text_at[id], text.bytes, text.len);
		vocab->text_at[id + 1] = vocab->text_at[id] + (uint32_t)text.len;
		slot = slot_of(vocab, text.bytes, text.len);
		if (*slot)
			return yi_gguf_refuse_value(file, tokens, error,
						    "tokens %u and %u are the same text", *slot - 1,
						    id);
		*slot = id + 1;
	}
	return 0;
}

static int load_scores(struct yi_vocab *vocab, const struct yi_gguf *file, struct yi_error *error)
{
	const struct yi_gguf_value *scores;
	int code = yi_gguf_get_array(file, KEY_SCORES, YI_GGUF_F32, &scores, error);

	vocab->scores =
		yi_mem_zeroed(YI_MEM_TOKENIZER, (size_t)vocab->n_tokens * sizeof(*vocab->scores));
	if (!vocab->scores)
		return no_memory(error);
	if (code == -ENOENT)
		return 0;
	if (code)
		return code;
	if (scores->count != vocab->n_tokens)
		return yi_gguf_refuse_value(file, scores, error, "%llu scores for %u tokens",
					    (unsigned long long)scores->count, vocab->n_tokens);
	for (uint32_t id = 0; id < vocab->n_tokens; id++) {
		vocab->scores[id] = yi_gguf_f32_at(scores, id);
		if (isnan(vocab->scores[id]))
			return yi_gguf_refuse_value(file, scores, error,
						    "score of token %u is not a number", id);
	}
	return 0;
}

static uint8_t flags_of_type(int32_t type)
{
	static const uint8_t flags[] = {
		[1] = YI_TOKEN_NORMAL, [2] = YI_TOKEN_UNKNOWN, [3] = YI_TOKEN_CONTROL,
		[4] = YI_TOKEN_USER,   [6] = YI_TOKEN_BYTE,
	};

	return type >= 0 && type < (int32_t)sizeof(flags) ? flags[type] : 0;
}

static int hex_digit(char c)
{
	static const char digits[] = "0123456789abcdefABCDEF";
	const char *at = c ? strchr(digits, c) : NULL;
	int value = at ? (int)(at - digits) : -1;

	return value > 15 ? value - 6 : value;
}

/* Types of tokens; those of kind byte must spell their byte as <0xAB>. */
static int load_types(struct yi_vocab *vocab, const struct yi_gguf *file, struct yi_error *error)
{
	const struct yi_gguf_value *types;
	int code = yi_gguf_get_array(file, KEY_TYPES, YI_GGUF_I32, &types, error);

	vocab->flags = yi_mem_alloc(YI_MEM_TOKENIZER, vocab->n_tokens);
	if (!vocab->flags)
		return no_memory(error);
	memset(vocab->flags, YI_TOKEN_NORMAL, vocab->n_tokens);
	if (code == -ENOENT)
		return 0;
	if (code)
		return code;
	if (types->count != vocab->n_tokens)
		return yi_gguf_refuse_value(file, types, error, "%llu types for %u tokens",
					    (unsigned long long)types->count, vocab->n_tokens);
	for (uint32_t id = 0; id < vocab->n_tokens; id++) {
		size_t len;
		const char *text = yi_vocab_text(vocab, id, &len);

		vocab->flags[id] = flags_of_type(yi_gguf_i32_at(types, id));
		if ((vocab->flags[id] & YI_TOKEN_BYTE) &&
		    (len != 6 || memcmp(text, "<0x", 3) || text[5] != '>' ||
		     hex_digit(text[3]) < 0 || hex_digit(text[4]) < 0))
			return yi_gguf_refuse_value(file, types, error,
						    "token %u is a byte but not written <0xAB>",
						    id);
	}
	return 0;
}

static int find_bytes(struct yi_vocab *vocab, const struct yi_gguf *file,
		      const struct yi_gguf_value *tokens, struct yi_error *error)
{
	for (int byte = 0; byte < 256; byte++) {
		char name[8], raw = (char)byte;

		snprintf(name, sizeof(name), "<0x%02X>", byte);
		vocab->byte_ids[byte] = yi_vocab_find(vocab, name, 6);
		if (vocab->byte_ids[byte] < 0)
			vocab->byte_ids[byte] = yi_vocab_find(vocab, &raw, 1);
		if (vocab->byte_ids[byte] < 0)
			return yi_gguf_refuse_value(file, tokens, error, "no token for byte %s",
						    name);
	}
	return 0;
}

/* Splits "left right" at the first blank that is not the first byte; without one it is no merge. */
static int add_merge(struct yi_vocab *vocab, struct yi_text text, uint32_t at, uint32_t rank)
{
	const char *blank = text.len > 1 ? memchr(text.bytes + 1, ' ', text.len - 1) : NULL;
	struct yi_merge *merge = &vocab->merges[vocab->n_merges];
	uint32_t *slot;

	if (!blank)
		return 0;
	merge->at = at;
	merge->left = (uint16_t)(blank - text.bytes);
	merge->right = (uint16_t)(text.len - merge->left - 1);
	merge->rank = rank;
	memcpy(vocab->merge_texts + at, text.bytes, merge->left);
	memcpy(vocab->merge_texts + at + merge->left, blank + 1, merge->right);
	slot = merge_slot_of(vocab, vocab->merge_texts + at, merge->left, merge->right);
	/* Of two equal merges the first one counts. */
	if (!*slot)
		*slot = ++vocab->n_merges;
	return merge->left + merge->right;
}

static int load_merges(struct yi_vocab *vocab, const struct yi_gguf *file, struct yi_error *error)
{
	const struct yi_gguf_value *merges;
	const uint8_t *at = NULL;
	struct yi_text text;
	uint32_t used = 0, rank = 0;
	int code = yi_gguf_get_array(file, KEY_MERGES, YI_GGUF_STRING, &merges, error);

	if (code == -ENOENT)
		return yi_gguf_refuse(file, KEY_MERGES, error, "missing");
	if (code)
		return code;
	if (merges->count > MAX_MERGES || merges->data_bytes > UINT32_MAX)
		return yi_gguf_refuse_value(file, merges, error, "too many merges");
	vocab->merge_mask = slots_for(merges->count) - 1;
	vocab->merges = yi_mem_array(YI_MEM_TOKENIZER, merges->count, sizeof(*vocab->merges));
	vocab->merge_texts = yi_mem_alloc(YI_MEM_TOKENIZER, merges->data_bytes);
	vocab->merge_slots = yi_mem_zeroed(YI_MEM_TOKENIZER, ((size_t)vocab->merge_mask + 1) *
								     sizeof(*vocab->merge_slots));
	if (!vocab->merges || !vocab->merge_texts || !vocab->merge_slots)
		return no_memory(error);
	for (; yi_gguf_next_text(merges, &at, &text); rank++) {
		if (text.len > MAX_TEXT)
			return yi_gguf_refuse_value(file, merges, error,
						    "merge %u has %zu bytes, at most %u", rank,
						    text.len, MAX_TEXT);
		used += (uint32_t)add_merge(vocab, text, used, rank);
	}
	return 0;
}

/* Reads the kind, the pre-tokenizer and the defaults that depend on them. */
static int load_kind(struct yi_vocab *vocab, const struct yi_gguf *file, struct yi_error *error)
{
	struct yi_text model, pre;
	int code = yi_gguf_get_text(file, KEY_MODEL, &model, error);

	if (code == -ENOENT)
		return yi_gguf_refuse(file, KEY_MODEL, error, "missing");
	if (code)
		return code;
	vocab->eot = vocab->eom = vocab->unk = -1;
	if (model.len == 5 && memcmp(model.bytes, "llama", 5) == 0) {
		vocab->kind = YI_VOCAB_SPM;
		vocab->bos = 1;
		vocab->eos = 2;
		vocab->unk = 0;
		vocab->add_bos = vocab->add_space_prefix = true;
		return 0;
	}
	if (model.len != 4 || memcmp(model.bytes, "gpt2", 4) != 0)
		return yi_gguf_refuse_value(file, yi_gguf_find(file, KEY_MODEL), error,
					    "unknown tokenizer");
	vocab->kind = YI_VOCAB_BPE;
	vocab->bos = vocab->eos = 11;
	code = yi_gguf_get_text(file, KEY_PRE, &pre, error);
	if (code == -ENOENT)
		return yi_gguf_refuse(file, KEY_PRE, error, "missing");
	if (code)
		return code;
	vocab->pretok = yi_pretok_find(pre.bytes, pre.len);
	if (!vocab->pretok)
		return yi_gguf_refuse_value(file, yi_gguf_find(file, KEY_PRE), error,
					    "unknown pre-tokenizer");
	vocab->add_bos = vocab->pretok->add_bos;
	return 0;
}

static int load_all(struct yi_vocab *vocab, const struct yi_gguf *file, uint32_t n_tokens,
		    struct yi_error *error)
{
	const struct yi_gguf_value *tokens;
	int code = load_kind(vocab, file, error);

	if (code)
		return code;
	code = yi_gguf_get_array(file, KEY_TOKENS, YI_GGUF_STRING, &tokens, error);
	if (code == -ENOENT)
		return yi_gguf_refuse(file, KEY_TOKENS, error, "missing");
	if (code)
		return code;
	if (tokens->count == 0 || tokens->count > INT32_MAX / 4)
		return yi_gguf_refuse_value(file, tokens, error, "%llu tokens",
					    (unsigned long long)tokens->count);
	vocab->n_tokens = (uint32_t)tokens->count;
	if (n_tokens && n_tokens != vocab->n_tokens)
		return yi_gguf_refuse_value(file, tokens, error, "%u tokens, %u embeddings",
					    vocab->n_tokens, n_tokens);
	code = load_texts(vocab, file, tokens, error);
	if (code == 0)
		code = load_scores(vocab, file, error);
	if (code == 0)
		code = load_types(vocab, file, error);
	if (code == 0 && vocab->kind == YI_VOCAB_SPM)
		code = find_bytes(vocab, file, tokens, error);
	if (code == 0 && vocab->kind == YI_VOCAB_BPE)
		code = load_merges(vocab, file, error);
	return code ? code : yi_vocab_mark_special(vocab, file, error);
}

struct yi_vocab *yi_vocab_load(const struct yi_gguf *file, uint32_t n_tokens,
			       struct yi_error *error)
{
	struct yi_vocab *vocab = yi_mem_zeroed(YI_MEM_TOKENIZER, sizeof(*vocab));

	if (!vocab) {
		no_memory(error);
		return NULL;
	}
	if (load_all(vocab, file, n_tokens, error)) {
		yi_vocab_free(vocab);
		return NULL;
	}
	return vocab;
}

void yi_vocab_free(struct yi_vocab *vocab)
{
	if (!vocab)
		return;
	yi_mem_free(YI_MEM_TOKENIZER, vocab->texts);
	yi_mem_free(YI_MEM_TOKENIZER, vocab->text_at);
	yi_mem_free(YI_MEM_TOKENIZER, vocab->scores);
	yi_mem_free(YI_MEM_TOKENIZER, vocab->flags);
	yi_mem_free(YI_MEM_TOKENIZER, vocab->slots);
	yi_mem_free(YI_MEM_TOKENIZER, vocab->merges);
	yi_mem_free(YI_MEM_TOKENIZER, vocab->merge_slots);
	yi_mem_free(YI_MEM_TOKENIZER, vocab->merge_texts);
	yi_mem_free(YI_MEM_TOKENIZER, vocab->special);
	yi_mem_free(YI_MEM_TOKENIZER, vocab);
}
