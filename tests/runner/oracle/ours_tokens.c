/* SPDX-License-Identifier: MIT */
/* What the runner's tokenizer says, in the form of tokens.c. */
#include <stdio.h>
#include <stdlib.h>

#include "tools/runner/tokenizer.h"

int main(int argc, char **argv)
{
	struct yi_error error = {0, ""};
	struct yi_gguf *file = argc == 3 ? yi_gguf_open(argv[1], &error) : NULL;
	struct yi_vocab *vocab = file ? yi_vocab_load(file, 0, &error) : NULL;
	FILE *in = vocab ? fopen(argv[2], "rb") : NULL;
	size_t room = 1 << 24, n, start = 0;
	char *texts = malloc(room);

	if (!in) {
		fprintf(stderr, "%s\n", error.text);
		return 3;
	}
	n = fread(texts, 1, room, in);
	for (size_t i = 0; i <= n; i++) {
		if (i < n && texts[i])
			continue;
		for (int how = 0; how < 4; how++) {
			struct yi_ids ids = {NULL, 0, 0};

			if (yi_tokenizer_encode(vocab, texts + start, i - start,
						(enum yi_tokenize)how, &ids))
				abort();
			for (size_t j = 0; j < ids.count; j++)
				printf("%u ", ids.ids[j]);
			puts("");
			yi_ids_clear(&ids);
		}
		start = i + 1;
	}
	printf("eog");
	for (uint32_t id = 0; id < vocab->n_tokens; id++)
		if (vocab->flags[id] & YI_TOKEN_EOG)
			printf(" %u", id);
	puts("");
	return 0;
}
