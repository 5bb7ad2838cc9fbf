/* SPDX-License-Identifier: MIT */
/*
 * Draws the next token from a row of logits.
 *
 * The steps and their order are those of llama.cpp's default chain (repetition penalty, top-k,
 * top-p, min-p, temperature, draw by a 32-bit Mersenne twister), computed in the same float
 * operations, so that equal logits and seeds give equal tokens.  Ties are broken by lower id.
 *
 * One thread at a time may use a sampler.
 */
#ifndef YI_SAMPLER_H
#define YI_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

struct yi_sampling {
	bool greedy;          /* the likeliest token; everything but the penalty is ignored */
	float temperature;    /* <= 0: only the likeliest token is left */
	int32_t top_k;        /* <= 0: off */
	float top_p;          /* >= 1: off */
	float min_p;          /* <= 0: off */
	float repeat_penalty; /* 1: off */
	uint32_t repeat_last; /* tokens that count as repeated */
	uint32_t seed;
};

#define YI_SAMPLING_DEFAULTS                                                                       \
	{                                                                                          \
		false, .8f, 40, .95f, .05f, 1.0f, 64, 0                                            \
	}

struct yi_sampler;

/* NULL: no memory. */
struct yi_sampler *yi_sampler_create(const struct yi_sampling *sampling, uint32_t n_vocab);
void yi_sampler_free(struct yi_sampler *sampler);
/* Tells of a token of the prompt or of one that was drawn. */
void yi_sampler_accept(struct yi_sampler *sampler, uint32_t token);
/* 0 or -ENOMEM: nothing was drawn, the same call may be made again.  Logits are only read. */
int yi_sampler_draw(struct yi_sampler *sampler, const float *logits, uint32_t *ret_token);

#endif
