/* SPDX-License-Identifier: MIT */
/*
 * A vocabulary: texts, scores and kinds of tokens, merges, special ids, as a GGUF file gives them.
 *
 * Owns copies of everything it needs, so the file may be closed.  Read-only once loaded: any
 * thread may use it.  Invariants, checked on load: n_tokens >= 1, no two tokens share a text, no
 * text is empty, special ids are -1 or below n_tokens, a SentencePiece vocabulary has a token for
 * every byte.
 */
#ifndef YI_VOCAB_H
#define YI_VOCAB_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/runner/gguf.h"
#include "tools/runner/pretok.h"

enum yi_vocab_kind {
	YI_VOCAB_SPM, /* "llama": SentencePiece BPE with byte fallback */
	YI_VOCAB_BPE  /* "gpt2": byte-level BPE */
};

/* Flags of a token. */
enum {
	YI_TOKEN_NORMAL = 1,
	YI_TOKEN_UNKNOWN = 2,
	YI_TOKEN_CONTROL = 4,
	YI_TOKEN_USER = 8, /* is cut out of a text before anything else */
	YI_TOKEN_BYTE = 16,
	YI_TOKEN_EOG = 32,   /* ends a generation */
	YI_TOKEN_RSTRIP = 64 /* swallows the white space that follows it */
};

struct yi_merge {
	uint32_t at; /* of the left text in merge_texts, the right one follows */
	uint16_t left, right;
	uint32_t rank;
};

struct yi_vocab {
	enum yi_vocab_kind kind;
	const struct yi_pretok *pretok; /* BPE only */
	uint32_t n_tokens;
	char *texts;
	uint32_t *text_at; /* n_tokens + 1 offsets into texts */
	float *scores;
	uint8_t *flags;
	uint32_t *slots; /* open-addressed: text -> id + 1 */
	uint32_t slot_mask;
	struct yi_merge *merges; /* BPE only */
	uint32_t n_merges, *merge_slots, merge_mask;
	char *merge_texts;
	uint32_t *special; /* ids that are cut out of texts, longest first */
	uint32_t n_special;
	int32_t byte_ids[256];           /* SPM only */
	int32_t bos, eos, eot, eom, unk; /* -1: none */
	bool add_bos, add_eos, add_space_prefix;
	bool has_template; /* the file brings a chat template ... */
	bool chatml;       /* ... and it is ChatML; or there is none and <|im_start|> is a token */
};

/* n_tokens: rows of the embedding, 0 where they are not known.  NULL: see error. */
struct yi_vocab *yi_vocab_load(const struct yi_gguf *file, uint32_t n_tokens,
			       struct yi_error *error);
void yi_vocab_free(struct yi_vocab *vocab);

/* Id of the token with that text; -1: none. */
int32_t yi_vocab_find(const struct yi_vocab *vocab, const char *text, size_t len);
/* Rank of merging two neighbours that stand side by side in `text`; -1: they don't merge. */
int32_t yi_vocab_rank(const struct yi_vocab *vocab, const char *text, size_t left, size_t right);
const char *yi_vocab_text(const struct yi_vocab *vocab, uint32_t id, size_t *ret_len);
/* Marks special tokens and collects those that are cut out of texts; vocab_special.c. */
int yi_vocab_mark_special(struct yi_vocab *vocab, const struct yi_gguf *file,
			  struct yi_error *error);

#endif
