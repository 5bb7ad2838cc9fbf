/* SPDX-License-Identifier: MIT */
/*
 * Vocabularies for made models; see make_model.h.
 *
 * Both kinds hold the special tokens of their family, every byte, the words below with all their
 * beginnings (so that merging can reach them) and, up to the size wanted, strings of letters.
 */
#include <errno.h>
#include <string.h>

#include "tools/runner/gguf.h"
#include "tools/runner/make_model.h"
#include "tools/runner/mem.h"

enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, BYTE = 6 };

static const char *const words[] = {
	"the",    "def",     "return", "function",  "int",     "for",     "while",    "if",
	"else",   "import",  "from",   "print",     "class",   "self",    "const",    "static",
	"struct", "void",    "char",   "include",   "sizeof",  "malloc",  "free",     "memory",
	"a",      "an",      "and",    "or",        "not",     "in",      "is",       "of",
	"to",     "with",    "that",   "this",      "are",     "be",      "by",       "on",
	"as",     "it",      "list",   "string",    "number",  "value",   "index",    "array",
	"sort",   "quick",   "write",  "code",      "Python",  "Hello",   "world",    "test",
	"data",   "model",   "user",   "assistant", "system",  "token",   "None",     "True",
	"False",  "async",   "await",  "public",    "private", "package", "let",      "var",
	"mut",    "fn",      "match",  "use",       "type",    "break",   "continue", "switch",
	"case",   "default", "do",     "yield",
};

struct vocab {
	struct yi_make_writer *writer;
	const struct yi_shape *shape;
	char (*tokens)[24]; /* texts, at most 23 bytes */
	uint8_t *types;
	char (*merges)[24]; /* byte-level: left and right with a blank between */
	uint32_t n_tokens, n_merges;
	uint32_t *slots; /* table of text -> number + 1 */
	uint32_t n_slots;
};

static uint32_t *find(const struct vocab *vocab, const char *text)
{
	uint32_t hash = 2166136261U;

	for (const char *at = text; *at; at++)
		hash = (hash ^ (uint8_t)*at) * 16777619U;
	hash ^= hash >> 15;
	for (;; hash++) {
		uint32_t *slot = &vocab->slots[hash & (vocab->n_slots - 1)];

		if (!*slot || strcmp(vocab->tokens[*slot - 1], text) == 0)
			return slot;
	}
}

/* True: there is such a token now that was not there before. */
static bool add(struct vocab *vocab, const char *text, uint8_t type)
{
	uint32_t *slot = find(vocab, text);

	if (*slot || vocab->n_tokens == vocab->shape->n_vocab)
		return false;
	strcpy(vocab->tokens[vocab->n_tokens], text);
	vocab->types[vocab->n_tokens++] = type;
	*slot = vocab->n_tokens;
	return true;
}

/* A token made of another one and one more character of `last` bytes. */
static void add_joined(struct vocab *vocab, const char *text, size_t last)
{
	const size_t left = strlen(text) - last;

	if (!add(vocab, text, NORMAL) || !vocab->merges)
		return;
	memcpy(vocab->merges[vocab->n_merges], text, left);
	vocab->merges[vocab->n_merges][left] = ' ';
	strcpy(vocab->merges[vocab->n_merges++] + left + 1, text + left);
}

static void add_specials(struct vocab *vocab)
{
	static const char *const sentence[] = {
		"<unk>",          "<|startoftext|>", "<|endoftext|>",
		"<|fim_prefix|>", "<|fim_middle|>",  "<|fim_suffix|>",
		"<|im_start|>",   "<|im_end|>",      "<|im_sep|>",
	};
	static const char *const byte_level[] = {
		"<|endoftext|>",
		"<|im_start|>",
		"<|im_end|>",
		"<repo_name>",
	};

	for (size_t i = 0; !vocab->shape->byte_level && i < 9; i++)
		add(vocab, sentence[i], i ? CONTROL : UNKNOWN);
	for (size_t i = 0; vocab->shape->byte_level && i < 4; i++)
		add(vocab, byte_level[i], CONTROL);
}

/* UTF-8 of a character below U+0800; returns the byte behind it. */
static char *put_char(char *to, uint32_t code)
{
	if (code < 0x80) {
		*to++ = (char)code;
	} else {
		*to++ = (char)(0xc0 | code >> 6);
		*to++ = (char)(0x80 | (code & 63));
	}
	return to;
}

/* The character that stands for a byte in byte-level vocabularies: printable ones themselves. */
static uint32_t char_of_byte(uint32_t byte)
{
	uint32_t next = 256;

	for (uint32_t b = 0; b <= byte; b++) {
		const bool shown =
			(b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;

		if (b == byte)
			return shown ? b : next;
		next += !shown;
	}
	return 0;
}

static void add_bytes(struct vocab *vocab)
{
	char text[24];

	for (uint32_t byte = 0; byte < 256; byte++) {
		if (vocab->shape->byte_level) {
			*put_char(text, char_of_byte(byte)) = 0;
			add(vocab, text, NORMAL);
		} else {
			snprintf(text, sizeof(text), "<0x%02X>", byte);
			add(vocab, text, BYTE);
		}
	}
	/* The other kind has its characters beside the bytes. */
	if (!vocab->shape->byte_level) {
		add(vocab, "\xe2\x96\x81", NORMAL);
		for (char c = 0x21; c < 0x7f; c++)
			add(vocab, (char[]){c, 0}, NORMAL);
	}
}

static void add_words(struct vocab *vocab)
{
	const char *blank = vocab->shape->byte_level ? "\xc4\xa0" : "\xe2\x96\x81";

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		for (size_t len = 1; len <= strlen(words[i]); len++) {
			char text[24];

			snprintf(text, sizeof(text), "%s%.*s", blank, (int)len, words[i]);
			add_joined(vocab, text, 1);
			if (len > 1)
				add_joined(vocab, text + strlen(blank), 1);
		}
	}
}

/* Strings of 2, 3 and 4 letters until the vocabulary is full. */
static void add_letters(struct vocab *vocab)
{
	for (uint32_t len = 2, count = 26 * 26; len <= 5; len++, count *= 26) {
		for (uint32_t number = 0; number < count; number++) {
			char text[24] = {0};
			uint32_t rest = number;

			if (vocab->n_tokens == vocab->shape->n_vocab)
				return;
			for (uint32_t i = len; i-- > 0; rest /= 26)
				text[i] = (char)('a' + rest % 26);
			add_joined(vocab, text, 1);
		}
	}
}

static void write_texts(struct yi_make_writer *writer, const char *key, char (*texts)[24],
			uint32_t count)
{
	yi_make_array(writer, key, YI_GGUF_STRING, count);
	for (uint32_t i = 0; i < count; i++)
		yi_make_text(writer, texts[i], strlen(texts[i]));
}

static void write_vocab(const struct vocab *vocab)
{
	static const char chat[] =
		"{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + "
		"message['content'] + '<|im_end|>\\n' }}{% endfor %}"
		"{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
	struct yi_make_writer *writer = vocab->writer;
	const bool byte_level = vocab->shape->byte_level;

	yi_make_value_text(writer, "tokenizer.ggml.model", byte_level ? "gpt2" : "llama");
	yi_make_value_text(writer, "tokenizer.ggml.pre", byte_level ? "smollm" : "default");
	write_texts(writer, "tokenizer.ggml.tokens", vocab->tokens, vocab->n_tokens);
	if (!byte_level) {
		yi_make_array(writer, "tokenizer.ggml.scores", YI_GGUF_F32, vocab->n_tokens);
		for (uint32_t i = 0; i < vocab->n_tokens; i++) {
			const float score = vocab->types[i] == NORMAL ? -(float)i : 0.0f;

			yi_make_bytes(writer, &score, sizeof(score));
		}
	}
	yi_make_array(writer, "tokenizer.ggml.token_type", YI_GGUF_I32, vocab->n_tokens);
	for (uint32_t i = 0; i < vocab->n_tokens; i++) {
		const int32_t type = vocab->types[i];

		yi_make_bytes(writer, &type, sizeof(type));
	}
	if (byte_level)
		write_texts(writer, "tokenizer.ggml.merges", vocab->merges, vocab->n_merges);
	yi_make_value_u32(writer, "tokenizer.ggml.bos_token_id", 1);
	yi_make_value_u32(writer, "tokenizer.ggml.eos_token_id", byte_level ? 2 : 7);
	yi_make_value_u32(writer, "tokenizer.ggml.eot_token_id", byte_level ? 0 : 2);
	if (!byte_level) {
		yi_make_value_u32(writer, "tokenizer.ggml.unknown_token_id", 0);
		yi_make_value_bool(writer, "tokenizer.ggml.add_space_prefix", false);
	}
	yi_make_value_bool(writer, "tokenizer.ggml.add_bos_token", false);
	yi_make_value_bool(writer, "tokenizer.ggml.add_eos_token", false);
	yi_make_value_text(writer, "tokenizer.chat_template", chat);
}

int yi_make_vocab(struct yi_make_writer *writer, const struct yi_shape *shape)
{
	struct vocab vocab = {.writer = writer, .shape = shape, .n_slots = 1024};
	int error = -ENOMEM;

	while (vocab.n_slots < shape->n_vocab * 2)
		vocab.n_slots *= 2;
	vocab.tokens = yi_mem_array(YI_MEM_OTHER, shape->n_vocab, sizeof(*vocab.tokens));
	vocab.types = yi_mem_alloc(YI_MEM_OTHER, shape->n_vocab);
	vocab.slots = yi_mem_zeroed(YI_MEM_OTHER, vocab.n_slots * sizeof(*vocab.slots));
	if (shape->byte_level)
		vocab.merges = yi_mem_array(YI_MEM_OTHER, shape->n_vocab, sizeof(*vocab.merges));
	if (vocab.tokens && vocab.types && vocab.slots && (vocab.merges || !shape->byte_level)) {
		add_specials(&vocab);
		add_bytes(&vocab);
		add_words(&vocab);
		add_letters(&vocab);
		write_vocab(&vocab);
		error = 0;
	}
	yi_mem_free(YI_MEM_OTHER, vocab.tokens);
	yi_mem_free(YI_MEM_OTHER, vocab.types);
	yi_mem_free(YI_MEM_OTHER, vocab.slots);
	yi_mem_free(YI_MEM_OTHER, vocab.merges);
	return error;
}
