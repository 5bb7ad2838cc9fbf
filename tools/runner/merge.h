/* SPDX-License-Identifier: MIT */
/*
 * The merge loop that both kinds of vocabulary share: neighbours are joined, best pair first,
 * until no pair merges.
 *
 * A struct yi_merger is scratch memory of one thread; it grows and is reused between words.
 */
#ifndef YI_MERGE_H
#define YI_MERGE_H

#include "tools/runner/vocab.h"

struct yi_symbol {
	uint32_t at, len;   /* in the text; len 0: merged into its left neighbour */
	int32_t prev, next; /* numbers of symbols, -1: none */
};

struct yi_pair {
	float score; /* higher merges first; the leftmost among equals */
	uint32_t left, right, len;
};

struct yi_merger {
	struct yi_symbol *symbols;
	size_t n_symbols, symbol_room;
	struct yi_pair *heap;
	size_t n_pairs, pair_room;
};

/*
 * Cuts the text into characters (or leaves it whole, where whole words count) and merges.
 * Afterwards symbol 0 starts the chain of what is left.  0 or -ENOMEM.  A text of no bytes leaves
 * no symbols; texts have less than 2 GiB.
 */
int yi_merge_run(struct yi_merger *merger, const struct yi_vocab *vocab, const char *text,
		 size_t len);
void yi_merge_clear(struct yi_merger *merger);

#endif
