/* SPDX-License-Identifier: MIT */
/*
 * Text to token ids, and ids back to text.
 *
 * The ids are those of llama.cpp for the same vocabulary and text.  Functions allocate their
 * temporaries and are safe on any number of threads over one vocabulary.
 */
#ifndef YI_TOKENIZER_H
#define YI_TOKENIZER_H

#include <stdio.h>

#include "tools/runner/vocab.h"

/* How special tokens are treated; combine with |. */
enum yi_tokenize {
	YI_TOKENIZE_PLAIN = 0,
	YI_TOKENIZE_ADD_SPECIAL = 1,  /* bos in front and eos behind where the file wants them */
	YI_TOKENIZE_PARSE_SPECIAL = 2 /* control tokens in the text are recognised */
};

struct yi_ids {
	uint32_t *ids; /* YI_MEM_REQUESTS; free with yi_ids_clear */
	size_t count, room;
};

/* Appends the ids of the text; it may hold any bytes.  0 or -ENOMEM (ids are then unchanged). */
int yi_tokenizer_encode(const struct yi_vocab *vocab, const char *text, size_t len,
			enum yi_tokenize how, struct yi_ids *ids);
int yi_ids_add(struct yi_ids *ids, uint32_t id);
/* Room for `more`, so that as many adds can't fail.  0 or -ENOMEM. */
int yi_ids_reserve(struct yi_ids *ids, size_t more);
void yi_ids_clear(struct yi_ids *ids);

/*
 * One user message in ChatML, ready for the assistant's answer:
 * <|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n.  To be encoded with PARSE_SPECIAL.
 * NULL: no memory; free with yi_mem_free(YI_MEM_REQUESTS, ...).
 */
char *yi_tokenizer_chat(const char *text, size_t len, size_t *ret_len);

/*
 * The bytes one token stands for, into `ret_piece` as far as `room` allows; returns their number.
 * Control tokens stand for nothing.  A piece need not be whole characters.
 */
size_t yi_tokenizer_piece(const struct yi_vocab *vocab, uint32_t id, char *ret_piece, size_t room);

/*
 * Turns a stream of pieces into well-formed UTF-8: a character is held back until it is complete,
 * bytes that can't become one are replaced by U+FFFD.  Zero-initialise.
 */
struct yi_detok {
	char held[4];
	size_t held_bytes;
};

/* Room that a piece of that many bytes needs at most when it comes out. */
#define YI_DETOK_ROOM(bytes) (3 * ((bytes) + 4))

size_t yi_detok_add(struct yi_detok *detok, const char *piece, size_t bytes, char *ret_text);
/* What is held back at the end, as U+FFFD. */
size_t yi_detok_end(struct yi_detok *detok, char *ret_text);
/* Writes a token's text to a stream.  0 or -ENOMEM. */
int yi_detok_print(struct yi_detok *detok, const struct yi_vocab *vocab, uint32_t id, FILE *out);

#endif
