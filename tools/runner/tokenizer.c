/* SPDX-License-Identifier: MIT */
#include "tools/runner/tokenizer.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "tools/runner/mem.h"
#include "tools/runner/merge.h"
#include "tools/runner/unicode.h"

/* Stands for a blank in a SentencePiece vocabulary: U+2581. */
#define BLANK "\xe2\x96\x81"
#define BLANK_BYTES 3

/* A stretch of the text: a special token (id >= 0) or text still to be tokenized. */
struct fragment {
	size_t at, len;
	int32_t id;
};

struct fragments {
	struct fragment *list;
	size_t count, room;
};

int yi_ids_reserve(struct yi_ids *ids, size_t more)
{
	size_t room = ids->room ? ids->room * 2 : 32;
	uint32_t *list;

	if (ids->room - ids->count >= more)
		return 0;
	room = room < ids->count + more ? ids->count + more : room;
	list = yi_mem_resize(YI_MEM_REQUESTS, ids->ids, room * sizeof(*list));
	if (!list)
		return -ENOMEM;
	ids->ids = list;
	ids->room = room;
	return 0;
}

int yi_ids_add(struct yi_ids *ids, uint32_t id)
{
	if (yi_ids_reserve(ids, 1))
		return -ENOMEM;
	ids->ids[ids->count++] = id;
	return 0;
}

void yi_ids_clear(struct yi_ids *ids)
{
	yi_mem_free(YI_MEM_REQUESTS, ids->ids);
	memset(ids, 0, sizeof(*ids));
}

static int add_fragment(struct fragments *fragments, size_t at, size_t len, int32_t id)
{
	if (len == 0 && id < 0)
		return 0;
	if (fragments->count == fragments->room) {
		size_t room = fragments->room ? fragments->room * 2 : 8;
		struct fragment *list =
			yi_mem_resize(YI_MEM_REQUESTS, fragments->list, room * sizeof(*list));

		if (!list)
			return -ENOMEM;
		fragments->list = list;
		fragments->room = room;
	}
	fragments->list[fragments->count++] = (struct fragment){at, len, id};
	return 0;
}

/* Cuts every occurrence of one special token out of one fragment. */
static int cut_fragment(struct fragments *out, const struct yi_vocab *vocab, const char *text,
			struct fragment whole, uint32_t id)
{
	size_t at = whole.at, end = whole.at + whole.len, len;
	const char *special = yi_vocab_text(vocab, id, &len);
	int code = 0;

	while (code == 0) {
		const char *match = memmem(text + at, end - at, special, len);
		size_t found = match ? (size_t)(match - text) : end;

		code = add_fragment(out, at, found - at, -1);
		if (!match || code)
			return code;
		code = add_fragment(out, found, len, (int32_t)id);
		at = found + len;
		if (vocab->flags[id] & YI_TOKEN_RSTRIP)
			while (at < end && isspace((unsigned char)text[at]))
				at++;
	}
	return code;
}

/* Splits the text into fragments by special tokens, longest first. */
static int cut_special(struct fragments *fragments, const struct yi_vocab *vocab, const char *text,
		       size_t len, enum yi_tokenize how)
{
	int code = add_fragment(fragments, 0, len, -1);

	for (uint32_t i = 0; code == 0 && i < vocab->n_special; i++) {
		struct fragments cut = {NULL, 0, 0};
		uint32_t id = vocab->special[i];
		size_t special_len;
		const char *special = yi_vocab_text(vocab, id, &special_len);

		if (!(how & YI_TOKENIZE_PARSE_SPECIAL) &&
		    (vocab->flags[id] & (YI_TOKEN_CONTROL | YI_TOKEN_UNKNOWN)))
			continue;
		if (!memmem(text, len, special, special_len))
			continue;
		for (size_t j = 0; code == 0 && j < fragments->count; j++) {
			struct fragment old = fragments->list[j];

			code = old.id < 0 ? cut_fragment(&cut, vocab, text, old, id)
					  : add_fragment(&cut, old.at, old.len, old.id);
		}
		yi_mem_free(YI_MEM_REQUESTS, fragments->list);
		*fragments = cut;
	}
	return code;
}

static int add_symbol(const struct yi_vocab *vocab, const char *text, size_t len,
		      struct yi_ids *ids)
{
	int32_t id = yi_vocab_find(vocab, text, len);
	int code = 0;

	if (id >= 0)
		return yi_ids_add(ids, (uint32_t)id);
	for (size_t i = 0; code == 0 && i < len; i++) {
		id = vocab->kind == YI_VOCAB_SPM ? vocab->byte_ids[(uint8_t)text[i]]
						 : yi_vocab_find(vocab, text + i, 1);
		/*
		 * A byte-level vocabulary without that token drops it, as other implementations do.
		 */
		if (id >= 0)
			code = yi_ids_add(ids, (uint32_t)id);
	}
	return code;
}

static int add_merged(struct yi_merger *merger, const struct yi_vocab *vocab, const char *text,
		      size_t len, struct yi_ids *ids)
{
	int code = yi_merge_run(merger, vocab, text, len);

	for (int32_t i = len ? 0 : -1; code == 0 && i >= 0; i = merger->symbols[i].next)
		code = add_symbol(vocab, text + merger->symbols[i].at, merger->symbols[i].len, ids);
	return code;
}

enum prefix { PREFIX_NONE, PREFIX_BLANK };

static int encode_spm(struct yi_merger *merger, const struct yi_vocab *vocab, const char *text,
		      size_t len, enum prefix prefix, struct yi_ids *ids)
{
	char *spelled = yi_mem_array(YI_MEM_REQUESTS, len + 1, BLANK_BYTES);
	size_t used = 0;
	int code;

	if (!spelled)
		return -ENOMEM;
	if (prefix == PREFIX_BLANK) {
		memcpy(spelled, BLANK, BLANK_BYTES);
		used = BLANK_BYTES;
	}
	for (size_t i = 0; i < len; i++) {
		if (text[i] == ' ') {
			memcpy(spelled + used, BLANK, BLANK_BYTES);
			used += BLANK_BYTES;
		} else {
			spelled[used++] = text[i];
		}
	}
	code = add_merged(merger, vocab, spelled, used, ids);
	yi_mem_free(YI_MEM_REQUESTS, spelled);
	return code;
}

/* Byte-level vocabularies spell each byte as a printable character: itself where it is one, the
 * others in order from U+0100. */
static uint32_t spell_byte(uint8_t byte)
{
	if ((byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad))
		return byte;
	if (byte <= 0x20)
		return 0x100u + byte;
	return byte == 0xad ? 0x143u : 0x121u + (byte - 0x7fu);
}

/* The reverse; -1: the character stands for no byte. */
static int byte_of_spelling(uint32_t code)
{
	if ((code >= 0x21 && code <= 0x7e) || (code >= 0xa1 && code <= 0xff && code != 0xad))
		return (int)code;
	if (code >= 0x100 && code <= 0x120)
		return (int)(code - 0x100);
	if (code >= 0x121 && code <= 0x142)
		return (int)(code - 0x121 + 0x7f);
	return code == 0x143 ? 0xad : -1;
}

static size_t spell(const uint32_t *codes, size_t n, char *ret_text)
{
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		char bytes[YI_UNICODE_BYTES];
		size_t len = yi_unicode_encode(codes[i], bytes);

		for (size_t j = 0; j < len; j++)
			used += yi_unicode_encode(spell_byte((uint8_t)bytes[j]), ret_text + used);
	}
	return used;
}

static int encode_bpe(struct yi_merger *merger, const struct yi_vocab *vocab, const char *text,
		      size_t len, struct yi_ids *ids)
{
	uint32_t *codes = yi_mem_array(YI_MEM_REQUESTS, len, sizeof(*codes));
	size_t *ends = yi_mem_array(YI_MEM_REQUESTS, len, sizeof(*ends));
	/* Two bytes of spelling for each of at most 4 of a character, and a replacement character
	 * of 3 bytes for one that is no UTF-8. */
	char *word = yi_mem_array(YI_MEM_REQUESTS, len + 1, 2 * YI_UNICODE_BYTES);
	size_t n = 0, words = 0, start = 0;
	int code = codes && ends && word ? 0 : -ENOMEM;

	for (size_t at = 0; code == 0 && at < len; n++)
		at += yi_unicode_decode(text + at, len - at, &codes[n]);
	if (code == 0)
		words = yi_pretok_split(vocab->pretok->kind, codes, n, ends);
	for (size_t i = 0; code == 0 && i < words; i++) {
		size_t used = spell(codes + start, ends[i] - start, word);

		code = add_merged(merger, vocab, word, used, ids);
		start = ends[i];
	}
	yi_mem_free(YI_MEM_REQUESTS, codes);
	yi_mem_free(YI_MEM_REQUESTS, ends);
	yi_mem_free(YI_MEM_REQUESTS, word);
	return code;
}

static int encode_fragments(const struct yi_vocab *vocab, const char *text,
			    const struct fragments *fragments, struct yi_ids *ids)
{
	struct yi_merger merger = {NULL, 0, 0, NULL, 0, 0};
	/* A fragment that starts the text or follows a special token gets a blank in front. */
	enum prefix prefix = vocab->add_space_prefix ? PREFIX_BLANK : PREFIX_NONE;
	int code = 0;

	for (size_t i = 0; code == 0 && i < fragments->count; i++) {
		const struct fragment *fragment = &fragments->list[i];

		if (fragment->id >= 0) {
			code = yi_ids_add(ids, (uint32_t)fragment->id);
			prefix = vocab->add_space_prefix ? PREFIX_BLANK : PREFIX_NONE;
		} else if (vocab->kind == YI_VOCAB_SPM) {
			code = encode_spm(&merger, vocab, text + fragment->at, fragment->len,
					  prefix, ids);
			prefix = PREFIX_NONE;
		} else {
			code = encode_bpe(&merger, vocab, text + fragment->at, fragment->len, ids);
		}
	}
	yi_merge_clear(&merger);
	return code;
}

int yi_tokenizer_encode(const struct yi_vocab *vocab, const char *text, size_t len,
			enum yi_tokenize how, struct yi_ids *ids)
{
	struct fragments fragments = {NULL, 0, 0};
	size_t before = ids->count;
	/* Spelling takes up to 8 bytes for one and offsets have 31 bits. */
	int code = len < INT32_MAX / 8 ? 0 : -ENOMEM;

	if (code == 0)
		code = cut_special(&fragments, vocab, text, len, how);
	if (code == 0 && (how & YI_TOKENIZE_ADD_SPECIAL) && vocab->add_bos)
		code = yi_ids_add(ids, (uint32_t)vocab->bos);
	if (code == 0)
		code = encode_fragments(vocab, text, &fragments, ids);
	if (code == 0 && (how & YI_TOKENIZE_ADD_SPECIAL) && vocab->add_eos)
		code = yi_ids_add(ids, (uint32_t)vocab->eos);
	yi_mem_free(YI_MEM_REQUESTS, fragments.list);
	if (code)
		ids->count = before;
	return code;
}

char *yi_tokenizer_chat(const char *text, size_t len, size_t *ret_len)
{
	static const char head[] = "<|im_start|>user\n";
	static const char tail[] = "<|im_end|>\n<|im_start|>assistant\n";
	size_t total = sizeof(head) - 1 + len + sizeof(tail) - 1;
	char *chat = yi_mem_alloc(YI_MEM_REQUESTS, total + 1);

	if (!chat)
		return NULL;
	memcpy(chat, head, sizeof(head) - 1);
	memcpy(chat + sizeof(head) - 1, text, len);
	memcpy(chat + sizeof(head) - 1 + len, tail, sizeof(tail));
	*ret_len = total;
	return chat;
}

struct piece {
	char *bytes;
	size_t used, room;
};

static void put(struct piece *piece, const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++, piece->used++)
		if (piece->used < piece->room)
			piece->bytes[piece->used] = bytes[i];
}

static void put_spm(struct piece *piece, const char *text, size_t len)
{
	for (size_t at = 0; at < len;) {
		if (len - at >= BLANK_BYTES && memcmp(text + at, BLANK, BLANK_BYTES) == 0) {
			put(piece, " ", 1);
			at += BLANK_BYTES;
		} else {
			put(piece, text + at++, 1);
		}
	}
}

static void put_bpe(struct piece *piece, const char *text, size_t len)
{
	for (size_t at = 0; at < len;) {
		uint32_t code;
		size_t bytes = yi_unicode_decode(text + at, len - at, &code);
		int byte = byte_of_spelling(code);
		char raw = (char)byte;

		if (byte >= 0)
			put(piece, &raw, 1);
		else
			put(piece, text + at, bytes);
		at += bytes;
	}
}

/* Of a digit in a byte token, which yi_vocab_load has checked. */
static int hex_value(char c)
{
	return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
}

size_t yi_tokenizer_piece(const struct yi_vocab *vocab, uint32_t id, char *ret_piece, size_t room)
{
	struct piece piece = {ret_piece, 0, room};
	uint8_t flags = vocab->flags[id];
	size_t len;
	const char *text = yi_vocab_text(vocab, id, &len);

	if (flags & (YI_TOKEN_CONTROL | YI_TOKEN_UNKNOWN))
		return 0;
	if (flags & YI_TOKEN_USER) {
		put(&piece, text, len);
	} else if (flags & YI_TOKEN_NORMAL) {
		if (vocab->kind == YI_VOCAB_SPM)
			put_spm(&piece, text, len);
		else
			put_bpe(&piece, text, len);
	} else if (flags & YI_TOKEN_BYTE) {
		char raw = (char)(hex_value(text[3]) * 16 + hex_value(text[4]));

		put(&piece, &raw, 1);
	}
	return piece.used;
}
