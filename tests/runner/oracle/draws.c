/* SPDX-License-Identifier: MIT */
/*
 * What llama.cpp's sampler chain draws: draws LOGITS N_VOCAB, where LOGITS holds rows of floats.
 * Each configuration draws once from every row, in order, and prints the ids.
 * Compiled by oracle_draws.sh twice: with ORACLE against the oracle package, without against the runner.
 */
#include <stdio.h>
#include <stdlib.h>

#ifdef ORACLE
#include <llama.h>
#else
#include "tools/runner/sampler.h"
#endif

static const struct config {
	float temperature;
	int top_k;
	float top_p, min_p, repeat;
	unsigned last, seed;
	int greedy;
} configs[] = {
	{.8f, 40, .95f, .05f, 1.0f, 64, 1, 0},    {1.5f, 0, .9f, 0, 1.0f, 64, 2, 0},
	{1.0f, 0, 1.0f, .02f, 1.0f, 64, 3, 0},    {.7f, 200, .99f, .001f, 1.3f, 16, 4, 0},
	{0, 40, .95f, .05f, 1.1f, 64, 5, 0},      {2.0f, 0, 1.0f, 0, 1.0f, 64, 6, 0},
	{1.0f, 1, .5f, .5f, 1.0f, 64, 7, 0},      {1.2f, 0, .9999f, 0, .8f, 4, 4000000000u, 0},
	{1.0f, 1000000, .3f, 0, 1.0f, 64, 9, 0},  {.8f, 40, .95f, .05f, 1.0f, 64, 1, 1},
	{3.0f, 0, .97f, .0001f, 1.2f, 64, 11, 1},
};

#ifdef ORACLE
static unsigned draw(struct llama_sampler *chain, const float *row, int n_vocab)
{
	llama_token_data *list = malloc((size_t)n_vocab * sizeof(*list));
	llama_token_data_array all = {list, (size_t)n_vocab, -1, false};
	llama_token token;

	for (int i = 0; i < n_vocab; i++)
		list[i] = (llama_token_data){i, row[i], 0};
	llama_sampler_apply(chain, &all);
	token = all.data[all.selected].id;
	llama_sampler_accept(chain, token);
	free(list);
	return (unsigned)token;
}

static struct llama_sampler *create(const struct config *c, int n_vocab)
{
	struct llama_sampler *chain =
		llama_sampler_chain_init(llama_sampler_chain_default_params());

	llama_sampler_chain_add(
		chain, llama_sampler_init_penalties(n_vocab, (int)c->last, c->repeat, 0, 0));
	if (c->greedy) {
		llama_sampler_chain_add(chain, llama_sampler_init_greedy());
		return chain;
	}
	llama_sampler_chain_add(chain, llama_sampler_init_top_k(c->top_k));
	llama_sampler_chain_add(chain, llama_sampler_init_top_p(c->top_p, 1));
	llama_sampler_chain_add(chain, llama_sampler_init_min_p(c->min_p, 1));
	llama_sampler_chain_add(chain, llama_sampler_init_temp(c->temperature));
	llama_sampler_chain_add(chain, llama_sampler_init_dist(c->seed));
	return chain;
}
#else
static unsigned draw(struct yi_sampler *sampler, const float *row, int n_vocab)
{
	uint32_t token;

	(void)n_vocab;
	if (yi_sampler_draw(sampler, row, &token))
		abort();
	yi_sampler_accept(sampler, token);
	return token;
}

static struct yi_sampler *create(const struct config *c, int n_vocab)
{
	struct yi_sampling sampling = {c->greedy, c->temperature, c->top_k, c->top_p,
				       c->min_p,  c->repeat,      c->last,  c->seed};

	return yi_sampler_create(&sampling, (uint32_t)n_vocab);
}
#endif

int main(int argc, char **argv)
{
	FILE *file = argc == 3 ? fopen(argv[1], "rb") : NULL;
	int n_vocab = argc == 3 ? atoi(argv[2]) : 0;
	float *row = malloc((size_t)n_vocab * sizeof(*row));

	if (!file || !row)
		return 2;
	for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
		void *sampler = create(&configs[i], n_vocab);

		rewind(file);
		while (fread(row, sizeof(*row), (size_t)n_vocab, file) == (size_t)n_vocab)
			printf("%u ", draw(sampler, row, n_vocab));
		puts("");
	}
	return 0;
}
