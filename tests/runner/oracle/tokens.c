/* SPDX-License-Identifier: MIT */
/*
 * What llama.cpp's tokenizer says: tokens MODEL TEXTS, where TEXTS holds texts separated by NUL.
 * One line of ids for each text and each of the four ways (plain, add_special, parse_special,
 * both), then a line "eog" with the tokens that end a generation.  Compiled by oracle_tokens.sh against
 * the header and libraries of the oracle package.
 */
#include <llama.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void quiet(enum ggml_log_level level, const char *text, void *arg)
{
	(void)arg;
	if (level == GGML_LOG_LEVEL_ERROR)
		fputs(text, stderr);
}

static void print_ids(const struct llama_vocab *vocab, const char *text, size_t len, int how)
{
	/* A byte that is no UTF-8 becomes a character of three. */
	int32_t room = 3 * (int32_t)len + 16;
	llama_token *ids = malloc((size_t)room * sizeof(*ids));
	int32_t n = llama_tokenize(vocab, text, (int32_t)len, ids, room, (how & 1) != 0,
				   (how & 2) != 0);

	for (int32_t i = 0; i < n; i++)
		printf("%d ", ids[i]);
	puts(n < 0 ? "no room" : "");
	free(ids);
}

int main(int argc, char **argv)
{
	struct llama_model_params params = llama_model_default_params();
	struct llama_model *model;
	const struct llama_vocab *vocab;
	FILE *file = argc == 3 ? fopen(argv[2], "rb") : NULL;
	size_t room = 1 << 24, n, start = 0;
	char *texts = malloc(room);

	if (!file)
		return 2;
	n = fread(texts, 1, room, file);
	fclose(file);
	llama_log_set(quiet, NULL);
	params.vocab_only = true;
	model = llama_model_load_from_file(argv[1], params);
	if (!model)
		return 3;
	vocab = llama_model_get_vocab(model);
	for (size_t i = 0; i <= n; i++) {
		if (i < n && texts[i])
			continue;
		for (int how = 0; how < 4; how++)
			print_ids(vocab, texts + start, i - start, how);
		start = i + 1;
	}
	printf("eog");
	for (int32_t id = 0; id < llama_vocab_n_tokens(vocab); id++)
		if (llama_vocab_is_eog(vocab, id))
			printf(" %d", id);
	puts("");
	return 0;
}
