/* SPDX-License-Identifier: MIT */
/*
 * Pre-tokenizers: how a byte-level BPE vocabulary wants text cut into words before merging.
 *
 * Each stands for a regular expression; they are written out as small functions because a
 * general engine would be larger than all of them.  Pure functions; any thread.
 */
#ifndef YI_PRETOK_H
#define YI_PRETOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum yi_pretok_kind {
	/* 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S) */
	YI_PRETOK_GPT2,
	/* \p{N} alone first, then GPT2 on what lies between */
	YI_PRETOK_DIGITS,
	/* (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|
	 * ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+ */
	YI_PRETOK_LLAMA3,
	/* the same with \p{N} for \p{N}{1,3} */
	YI_PRETOK_QWEN2
};

struct yi_pretok {
	const char *name; /* tokenizer.ggml.pre */
	enum yi_pretok_kind kind;
	bool whole_words; /* a word that is a token is taken without merging */
	bool add_bos;     /* unless the file says otherwise */
};

/* NULL: no pre-tokenizer of that name is known. */
const struct yi_pretok *yi_pretok_find(const char *name, size_t len);

/* Writes where each word ends, in code points, to `ret_ends` (room for n); returns how many. */
size_t yi_pretok_split(enum yi_pretok_kind kind, const uint32_t *codes, size_t n, size_t *ret_ends);

#endif
