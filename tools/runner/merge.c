/* SPDX-License-Identifier: MIT */
#include "tools/runner/merge.h"

#include <errno.h>

#include "tools/runner/mem.h"
#include "tools/runner/unicode.h"

static bool before(const struct yi_pair *a, const struct yi_pair *b)
{
	return a->score > b->score || (a->score == b->score && a->left < b->left);
}

static int heap_push(struct yi_merger *merger, struct yi_pair pair)
{
	size_t at = merger->n_pairs;

	if (at == merger->pair_room) {
		size_t room = merger->pair_room ? merger->pair_room * 2 : 64;
		struct yi_pair *heap =
			yi_mem_resize(YI_MEM_REQUESTS, merger->heap, room * sizeof(*heap));

		if (!heap)
			return -ENOMEM;
		merger->heap = heap;
		merger->pair_room = room;
	}
	for (merger->n_pairs++; at > 0; at = (at - 1) / 2) {
		if (!before(&pair, &merger->heap[(at - 1) / 2]))
			break;
		merger->heap[at] = merger->heap[(at - 1) / 2];
	}
	merger->heap[at] = pair;
	return 0;
}

static struct yi_pair heap_pop(struct yi_merger *merger)
{
	struct yi_pair top = merger->heap[0];
	struct yi_pair last = merger->heap[--merger->n_pairs];
	size_t at = 0, child;

	while ((child = 2 * at + 1) < merger->n_pairs) {
		if (child + 1 < merger->n_pairs &&
		    before(&merger->heap[child + 1], &merger->heap[child]))
			child++;
		if (!before(&merger->heap[child], &last))
			break;
		merger->heap[at] = merger->heap[child];
		at = child;
	}
	if (merger->n_pairs)
		merger->heap[at] = last;
	return top;
}

/* Queues the pair if the vocabulary has a merge for it. */
static int consider(struct yi_merger *merger, const struct yi_vocab *vocab, const char *text,
		    int32_t left, int32_t right)
{
	const struct yi_symbol *a, *b;
	struct yi_pair pair;
	int32_t found;

	if (left < 0 || right < 0)
		return 0;
	a = &merger->symbols[left];
	b = &merger->symbols[right];
	if (vocab->kind == YI_VOCAB_SPM) {
		found = yi_vocab_find(vocab, text + a->at, a->len + b->len);
		pair.score = found < 0 ? 0 : vocab->scores[found];
	} else {
		found = yi_vocab_rank(vocab, text + a->at, a->len, b->len);
		/* Ranks stay below 2^24 in any real file, where they are exact in a float. */
		pair.score = -(float)found;
	}
	if (found < 0)
		return 0;
	pair.left = (uint32_t)left;
	pair.right = (uint32_t)right;
	pair.len = a->len + b->len;
	return heap_push(merger, pair);
}

static int cut(struct yi_merger *merger, const struct yi_vocab *vocab, const char *text, size_t len)
{
	bool whole =
		vocab->pretok && vocab->pretok->whole_words && yi_vocab_find(vocab, text, len) >= 0;
	size_t n = 0;

	if (len > merger->symbol_room) {
		struct yi_symbol *symbols =
			yi_mem_resize(YI_MEM_REQUESTS, merger->symbols, len * sizeof(*symbols));

		if (!symbols)
			return -ENOMEM;
		merger->symbols = symbols;
		merger->symbol_room = len;
	}
	for (size_t at = 0; at < len; n++) {
		size_t bytes = whole ? len : yi_unicode_length((uint8_t)text[at]);

		if (bytes > len - at)
			bytes = len - at;
		merger->symbols[n].at = (uint32_t)at;
		merger->symbols[n].len = (uint32_t)bytes;
		merger->symbols[n].prev = (int32_t)n - 1;
		merger->symbols[n].next = at + bytes < len ? (int32_t)n + 1 : -1;
		at += bytes;
	}
	merger->n_symbols = n;
	return 0;
}

int yi_merge_run(struct yi_merger *merger, const struct yi_vocab *vocab, const char *text,
		 size_t len)
{
	int code = cut(merger, vocab, text, len);

	merger->n_pairs = 0;
	for (size_t i = 1; code == 0 && i < merger->n_symbols; i++)
		code = consider(merger, vocab, text, (int32_t)i - 1, (int32_t)i);
	while (code == 0 && merger->n_pairs) {
		struct yi_pair pair = heap_pop(merger);
		struct yi_symbol *left = &merger->symbols[pair.left];
		struct yi_symbol *right = &merger->symbols[pair.right];

		/* One of the two has been merged since the pair was queued. */
		if (!left->len || !right->len || left->len + right->len != pair.len)
			continue;
		left->len += right->len;
		right->len = 0;
		left->next = right->next;
		if (right->next >= 0)
			merger->symbols[right->next].prev = (int32_t)pair.left;
		code = consider(merger, vocab, text, left->prev, (int32_t)pair.left);
		if (code == 0)
			code = consider(merger, vocab, text, (int32_t)pair.left, left->next);
	}
	return code;
}

void yi_merge_clear(struct yi_merger *merger)
{
	yi_mem_free(YI_MEM_REQUESTS, merger->symbols);
	yi_mem_free(YI_MEM_REQUESTS, merger->heap);
}
