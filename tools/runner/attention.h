/* SPDX-License-Identifier: MIT */
/* Attention of one head, for one token, over the visible positions of its sequence. */
#ifndef YI_ATTENTION_H
#define YI_ATTENTION_H

#include "tools/runner/dot.h"
#include "tools/runner/kv.h"

struct yi_attention {
	const struct yi_hparams *hp;
	const struct yi_kv *kv;
	uint32_t layer, position; /* the token sees positions up to its own */
	uint32_t kv_head;
	const float *q; /* head_dim floats */
	float *out;     /* head_dim floats */
};

/* Number of floats of scratch memory for a token that sees `visible` positions. */
size_t yi_attention_scratch(const struct yi_hparams *hp, uint32_t visible);
void yi_attention_run(const struct yi_attention *attention, const struct yi_kernels *kernels,
		      float *scratch);

#endif
