/* SPDX-License-Identifier: MIT */
/* Whatever a file says of its tokenizer: it is refused in one line, or texts become ids of the
 * vocabulary and ids become well-formed text; and nothing stays. */
#include "tests/fuzz/runner/mutate.h"
#include "tools/runner/mem.h"
#include "tools/runner/tokenizer.h"
#include "tools/runner/unicode.h"

static void try_text(const struct yi_vocab *vocab, const char *text, size_t len)
{
	struct yi_detok detok = {{0}, 0};
	struct yi_ids ids = {NULL, 0, 0};
	static char piece[1 << 17], out[YI_DETOK_ROOM(sizeof(piece))];

	for (int how = 0; how < 4; how++)
		if (yi_tokenizer_encode(vocab, text, len, (enum yi_tokenize)how, &ids))
			abort();
	for (size_t i = 0; i < ids.count; i++) {
		size_t bytes, used;

		if (ids.ids[i] >= vocab->n_tokens)
			abort();
		bytes = yi_tokenizer_piece(vocab, ids.ids[i], piece, sizeof(piece));
		if (bytes > sizeof(piece))
			abort();
		used = yi_detok_add(&detok, piece, bytes, out);
		for (size_t at = 0; at < used;) {
			int length = yi_unicode_check(out + at, used - at);

			if (length <= 0)
				abort();
			at += (size_t)length;
		}
	}
	yi_ids_clear(&ids);
}

static void try(const uint8_t *bytes, size_t len)
{
	struct yi_error error = {0, ""};
	struct yi_gguf *file;
	struct yi_vocab *vocab;

	mutate_write("model.gguf", bytes, len);
	file = yi_gguf_open("model.gguf", &error);
	vocab = file ? yi_vocab_load(file, 0, &error) : NULL;
	if (vocab) {
		static const char text[] =
			"Hello  world's 123\n\xff\xe2\x96\x81<|im_start|>x<s> \xf0\x9f\x98\x80";

		try_text(vocab, text, sizeof(text) - 1);
		try_text(vocab, (const char *)bytes, len < 300 ? len : 300);
		try_text(vocab, (const char *)bytes + len / 2, len / 2 < 300 ? len / 2 : 300);
	} else if (error.status != 3 || !error.text[0] || strchr(error.text, '\n')) {
		abort();
	}
	yi_vocab_free(vocab);
	yi_gguf_close(file);
	if (yi_mem_live_bytes())
		abort();
}

int main(int argc, char **argv)
{
	return mutate_main(argc, argv, try);
}
