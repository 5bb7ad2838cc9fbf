/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "tools/runner/mem.h"
#include "tools/runner/tokenizer.h"
#include "tools/runner/unicode.h"

/* Pieces of ordinary tokens fit; longer ones get a block of their own. */
#define SHORT_PIECE 128

static size_t replace(char *ret_text)
{
	return yi_unicode_encode(YI_UNICODE_REPLACEMENT, ret_text);
}

size_t yi_detok_add(struct yi_detok *detok, const char *piece, size_t bytes, char *ret_text)
{
	size_t used = 0;

	/* `held` is always a proper prefix of a character, so it is enough to add bytes singly. */
	for (size_t i = 0; i < bytes; i++) {
		int length;

		detok->held[detok->held_bytes++] = piece[i];
		while (detok->held_bytes) {
			length = yi_unicode_check(detok->held, detok->held_bytes);
			if (length == 0)
				break;
			if (length > 0) {
				memcpy(ret_text + used, detok->held, (size_t)length);
				used += (size_t)length;
			} else {
				used += replace(ret_text + used);
				length = -length;
			}
			detok->held_bytes -= (size_t)length;
			memmove(detok->held, detok->held + length, detok->held_bytes);
		}
	}
	return used;
}

size_t yi_detok_end(struct yi_detok *detok, char *ret_text)
{
	size_t used = detok->held_bytes ? replace(ret_text) : 0;

	detok->held_bytes = 0;
	return used;
}

int yi_detok_print(struct yi_detok *detok, const struct yi_vocab *vocab, uint32_t id, FILE *out)
{
	char small[SHORT_PIECE], text[YI_DETOK_ROOM(SHORT_PIECE)];
	size_t bytes = yi_tokenizer_piece(vocab, id, small, sizeof(small));
	char *large;

	if (bytes <= sizeof(small)) {
		fwrite(text, 1, yi_detok_add(detok, small, bytes, text), out);
		return 0;
	}
	/* The piece, followed by the text that results from it. */
	large = yi_mem_array(YI_MEM_REQUESTS, bytes + 4, 4);
	if (!large)
		return -ENOMEM;
	yi_tokenizer_piece(vocab, id, large, bytes);
	fwrite(large + bytes, 1, yi_detok_add(detok, large, bytes, large + bytes), out);
	yi_mem_free(YI_MEM_REQUESTS, large);
	return 0;
}
