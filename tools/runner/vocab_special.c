/* SPDX-License-Identifier: MIT */
/*
 * Which tokens of a vocabulary are special: ids from the file's keys, then what files are known
 * to leave out, recognised by text as llama.cpp does.  A model stops on any token of a set, not
 * on one id: many files in the wild name the wrong end-of-text token.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/runner/mem.h"
#include "tools/runner/vocab.h"

/* Role of a token, by its text. */
enum role {
	ROLE_END,        /* ends a generation */
	ROLE_FIM_PREFIX, /* fill-in-the-middle marks: the first of each kind is a control token */
	ROLE_FIM_SUFFIX,
	ROLE_FIM_MIDDLE,
	ROLE_FIM_PAD, /* these three end a generation too */
	ROLE_FIM_REPO,
	ROLE_FIM_FILE,
	ROLE_SHOWN, /* looks like control, is part of the text */
	ROLES
};

static const struct {
	enum role role;
	const char *text;
} known[] = {
	{ROLE_END, "<|im_end|>"},
	{ROLE_END, "<|endoftext|>"},
	{ROLE_END, "<|eot_id|>"},
	{ROLE_END, "<|eom_id|>"},
	{ROLE_END, "<|end|>"},
	{ROLE_END, "<|end_of_text|>"},
	{ROLE_END, "<|return|>"},
	{ROLE_END, "<|call|>"},
	{ROLE_END, "<|calls|>"},
	{ROLE_END, "<|flush|>"},
	{ROLE_END, "<end_of_turn>"},
	{ROLE_END, "<end_of_utterance>"},
	{ROLE_END, "</s>"},
	{ROLE_END, "<eos>"},
	{ROLE_END, "<EOT>"},
	{ROLE_END, "_<EOT>"},
	{ROLE_END, "[EOT]"},
	{ROLE_END, "[EOS]"},
	{ROLE_END, "<turn|>"},
	{ROLE_END, "<|tool_response>"},
	{ROLE_END, "[e~["},
	{ROLE_END, "<\xef\xbd\x9c"
		   "end\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>"},
	{ROLE_FIM_PREFIX, "<|fim_prefix|>"},
	{ROLE_FIM_PREFIX, "<fim-prefix>"},
	{ROLE_FIM_PREFIX, "<fim_prefix>"},
	{ROLE_FIM_PREFIX, "<\xef\xbd\x9c"
			  "fim\xe2\x96\x81"
			  "begin\xef\xbd\x9c>"},
	{ROLE_FIM_PREFIX, "<PRE>"},
	{ROLE_FIM_PREFIX, "\xe2\x96\x81<PRE>"},
	{ROLE_FIM_PREFIX, "<|code_prefix|>"},
	{ROLE_FIM_PREFIX, "<|prefix|>"},
	{ROLE_FIM_SUFFIX, "<|fim_suffix|>"},
	{ROLE_FIM_SUFFIX, "<fim-suffix>"},
	{ROLE_FIM_SUFFIX, "<fim_suffix>"},
	{ROLE_FIM_SUFFIX, "<\xef\xbd\x9c"
			  "fim\xe2\x96\x81hole\xef\xbd\x9c>"},
	{ROLE_FIM_SUFFIX, "<SUF>"},
	{ROLE_FIM_SUFFIX, "\xe2\x96\x81<SUF>"},
	{ROLE_FIM_SUFFIX, "<|code_suffix|>"},
	{ROLE_FIM_SUFFIX, "<|suffix|>"},
	{ROLE_FIM_MIDDLE, "<|fim_middle|>"},
	{ROLE_FIM_MIDDLE, "<fim-middle>"},
	{ROLE_FIM_MIDDLE, "<fim_middle>"},
	{ROLE_FIM_MIDDLE, "<\xef\xbd\x9c"
			  "fim\xe2\x96\x81"
			  "end\xef\xbd\x9c>"},
	{ROLE_FIM_MIDDLE, "<MID>"},
	{ROLE_FIM_MIDDLE, "\xe2\x96\x81<MID>"},
	{ROLE_FIM_MIDDLE, "<|code_middle|>"},
	{ROLE_FIM_MIDDLE, "<|middle|>"},
	{ROLE_FIM_PAD, "<|fim_pad|>"},
	{ROLE_FIM_PAD, "<fim-pad>"},
	{ROLE_FIM_PAD, "<fim_pad>"},
	{ROLE_FIM_PAD, "<PAD>"},
	{ROLE_FIM_PAD, "[PAD]"},
	{ROLE_FIM_REPO, "<|fim_repo|>"},
	{ROLE_FIM_REPO, "<|repo_name|>"},
	{ROLE_FIM_REPO, "<fim-repo>"},
	{ROLE_FIM_REPO, "<REPO>"},
	{ROLE_FIM_REPO, "<reponame>"},
	{ROLE_FIM_FILE, "<|file_sep|>"},
	{ROLE_SHOWN, "<|channel|>"},
	{ROLE_SHOWN, "<|message|>"},
	{ROLE_SHOWN, "<|start|>"},
	{ROLE_SHOWN, "<|constrain|>"},
};

/* Reads an id from the file; if absent the default stays, one beyond the vocabulary is refused. */
static int read_id(struct yi_vocab *vocab, const struct yi_gguf *file, const char *key,
		   int32_t *ret_id, struct yi_error *error)
{
	uint32_t id;
	int code;

	if (*ret_id >= 0 && (uint32_t)*ret_id >= vocab->n_tokens)
		*ret_id = -1;
	code = yi_gguf_get_u32(file, key, &id, error);
	if (code == -ENOENT)
		return 0;
	if (code)
		return code;
	if (id >= vocab->n_tokens)
		return yi_gguf_refuse_value(file, yi_gguf_find(file, key), error,
					    "%u is no token, there are %u", id, vocab->n_tokens);
	*ret_id = (int32_t)id;
	return 0;
}

static int read_flag(const struct yi_gguf *file, const char *key, bool *ret_flag,
		     struct yi_error *error)
{
	int code = yi_gguf_get_bool(file, key, ret_flag, error);

	return code == -ENOENT ? 0 : code;
}

static int read_keys(struct yi_vocab *vocab, const struct yi_gguf *file, int32_t fim[ROLES],
		     struct yi_error *error)
{
	const struct {
		const char *key;
		int32_t *id;
	} ids[] = {
		{"tokenizer.ggml.bos_token_id", &vocab->bos},
		{"tokenizer.ggml.eos_token_id", &vocab->eos},
		{"tokenizer.ggml.eot_token_id", &vocab->eot},
		{"tokenizer.ggml.eom_token_id", &vocab->eom},
		{"tokenizer.ggml.unknown_token_id", &vocab->unk},
		{"tokenizer.ggml.fim_pre_token_id", &fim[ROLE_FIM_PREFIX]},
		{"tokenizer.ggml.fim_suf_token_id", &fim[ROLE_FIM_SUFFIX]},
		{"tokenizer.ggml.fim_mid_token_id", &fim[ROLE_FIM_MIDDLE]},
		{"tokenizer.ggml.fim_pad_token_id", &fim[ROLE_FIM_PAD]},
		{"tokenizer.ggml.fim_rep_token_id", &fim[ROLE_FIM_REPO]},
		{"tokenizer.ggml.fim_sep_token_id", &fim[ROLE_FIM_FILE]},
		{"tokenizer.ggml.prefix_token_id", &fim[ROLE_FIM_PREFIX]},
		{"tokenizer.ggml.suffix_token_id", &fim[ROLE_FIM_SUFFIX]},
		{"tokenizer.ggml.middle_token_id", &fim[ROLE_FIM_MIDDLE]},
	};
	int code = 0;

	for (size_t i = 0; code == 0 && i < sizeof(ids) / sizeof(ids[0]); i++)
		code = read_id(vocab, file, ids[i].key, ids[i].id, error);
	if (code == 0)
		code = read_flag(file, "tokenizer.ggml.add_bos_token", &vocab->add_bos, error);
	if (code == 0)
		code = read_flag(file, "tokenizer.ggml.add_eos_token", &vocab->add_eos, error);
	if (code == 0)
		code = read_flag(file, "tokenizer.ggml.add_space_prefix", &vocab->add_space_prefix,
				 error);
	if (code)
		return code;
	if (vocab->add_bos && vocab->bos < 0)
		return yi_gguf_refuse(file, "tokenizer.ggml.add_bos_token", error,
				      "set, but there is no bos_token_id");
	if (vocab->add_eos && vocab->eos < 0)
		return yi_gguf_refuse(file, "tokenizer.ggml.add_eos_token", error,
				      "set, but there is no eos_token_id");
	return 0;
}

static void mark(struct yi_vocab *vocab, int32_t id, uint8_t flags)
{
	if (id >= 0)
		vocab->flags[id] |= flags;
}

static void mark_by_text(struct yi_vocab *vocab, int32_t fim[ROLES])
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		enum role role = known[i].role;
		int32_t id = yi_vocab_find(vocab, known[i].text, strlen(known[i].text));

		if (id < 0)
			continue;
		if (role == ROLE_SHOWN) {
			vocab->flags[id] = YI_TOKEN_USER;
		} else if (role == ROLE_END) {
			mark(vocab, id, YI_TOKEN_CONTROL | YI_TOKEN_EOG);
		} else if (fim[role] < 0) {
			fim[role] = id;
			mark(vocab, id, YI_TOKEN_CONTROL);
		}
	}
	mark(vocab, fim[ROLE_FIM_PAD], YI_TOKEN_EOG);
	mark(vocab, fim[ROLE_FIM_REPO], YI_TOKEN_EOG);
	mark(vocab, fim[ROLE_FIM_FILE], YI_TOKEN_EOG);
	mark(vocab, vocab->eos, YI_TOKEN_EOG);
	mark(vocab, vocab->eot, YI_TOKEN_EOG);
	mark(vocab, vocab->eom, YI_TOKEN_EOG);
}

struct ranked {
	uint32_t id, len;
};

static int longest_first(const void *a, const void *b)
{
	struct ranked x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	if (x.len != y.len)
		return x.len > y.len ? -1 : 1;
	return (x.id > y.id) - (x.id < y.id);
}

/* Collects the tokens that are cut out of a text before the rest is tokenized. */
static int collect(struct yi_vocab *vocab, struct yi_error *error)
{
	const uint8_t wanted = YI_TOKEN_CONTROL | YI_TOKEN_USER | YI_TOKEN_UNKNOWN;
	struct ranked *ranked;
	uint32_t n = 0;

	for (uint32_t id = 0; id < vocab->n_tokens; id++)
		n += (vocab->flags[id] & wanted) != 0;
	ranked = yi_mem_array(YI_MEM_TOKENIZER, n, sizeof(*ranked));
	vocab->special = yi_mem_array(YI_MEM_TOKENIZER, n, sizeof(*vocab->special));
	if (!ranked || !vocab->special) {
		yi_mem_free(YI_MEM_TOKENIZER, ranked);
		return yi_error_set(error, YI_EXIT_TROUBLE, -ENOMEM, "no memory for the tokenizer");
	}
	for (uint32_t id = 0; id < vocab->n_tokens; id++)
		if (vocab->flags[id] & wanted)
			ranked[vocab->n_special++] =
				(struct ranked){id, vocab->text_at[id + 1] - vocab->text_at[id]};
	qsort(ranked, n, sizeof(*ranked), longest_first);
	for (uint32_t i = 0; i < n; i++)
		vocab->special[i] = ranked[i].id;
	yi_mem_free(YI_MEM_TOKENIZER, ranked);
	return 0;
}

static bool holds(const char *text, size_t len, const char *word)
{
	size_t word_len = strlen(word);

	for (size_t at = 0; at + word_len <= len; at++) {
		size_t i = 0;

		while (i < word_len && tolower((unsigned char)text[at + i]) == word[i])
			i++;
		if (i == word_len)
			return true;
	}
	return false;
}

/*
 * Files don't say which special tokens swallow blanks; for one family of models it is known by
 * name.
 */
static void mark_rstrip(struct yi_vocab *vocab, const struct yi_gguf *file)
{
	static const char *const plain[] = {"<unk>", "<s>", "<|endoftext|>"};
	struct yi_error ignored = {0, ""};
	struct yi_text name;

	if (yi_gguf_get_text(file, "general.name", &name, &ignored) ||
	    !(holds(name.bytes, name.len, "phi-3") || holds(name.bytes, name.len, "phi3")))
		return;
	for (uint32_t i = 0; i < vocab->n_special; i++)
		vocab->flags[vocab->special[i]] |= YI_TOKEN_RSTRIP;
	mark(vocab, yi_vocab_find(vocab, "</s>", 4), YI_TOKEN_RSTRIP);
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
		int32_t id = yi_vocab_find(vocab, plain[i], strlen(plain[i]));

		if (id >= 0)
			vocab->flags[id] &= (uint8_t)~YI_TOKEN_RSTRIP;
	}
}

static int read_template(struct yi_vocab *vocab, const struct yi_gguf *file, struct yi_error *error)
{
	struct yi_text text;
	int code = yi_gguf_get_text(file, "tokenizer.chat_template", &text, error);

	if (code && code != -ENOENT)
		return code;
	vocab->has_template = code == 0;
	vocab->chatml = yi_vocab_find(vocab, "<|im_start|>", 12) >= 0 &&
			(code == -ENOENT || holds(text.bytes, text.len, "<|im_start|>"));
	return 0;
}

int yi_vocab_mark_special(struct yi_vocab *vocab, const struct yi_gguf *file,
			  struct yi_error *error)
{
	int32_t fim[ROLES];
	int code;

	for (int role = 0; role < ROLES; role++)
		fim[role] = -1;
	code = read_keys(vocab, file, fim, error);
	if (code)
		return code;
	mark_by_text(vocab, fim);
	code = collect(vocab, error);
	if (code)
		return code;
	mark_rstrip(vocab, file);
	return read_template(vocab, file, error);
}
