/* SPDX-License-Identifier: MIT */
/*
 * A llama-architecture model: hyperparameters, tensors, where their bytes are.
 *
 * yi_model_load refuses what the forward pass can't run (error->status 3); after it every tensor
 * has the shape its place demands.  Read-only once loaded: threads share it freely.
 */
#ifndef YI_MODEL_H
#define YI_MODEL_H

#include "tools/runner/gguf.h"

struct yi_hparams {
	uint32_t n_vocab;
	uint32_t n_ctx_train; /* tokens the model was trained for */
	uint32_t n_embd, n_layer, n_ff;
	uint32_t n_head, n_head_kv, head_dim;
	uint32_t kv_dim; /* n_head_kv * head_dim */
	float rope_base, rms_eps;
};

struct yi_tensor {
	const uint8_t *data;
	enum yi_type type;
	uint32_t n_in, n_out; /* elements of a row, rows */
	size_t row_bytes;
};

struct yi_layer {
	struct yi_tensor attn_norm, q, k, v, attn_output, ffn_norm, gate, up, down;
};

enum yi_load { YI_LOAD_MMAP, YI_LOAD_READ };
enum yi_populate { YI_POPULATE_NONE, YI_POPULATE_WILLNEED, YI_POPULATE_ALL };

struct yi_model {
	struct yi_gguf *file; /* stays open: the tokenizer reads its metadata */
	struct yi_hparams hp;
	struct yi_tensor embd, output_norm, output; /* output is embd where embeddings are tied */
	struct yi_layer *layers;
	const float *rope_freqs; /* divisors, head_dim / 2 of them; NULL: none */
	enum yi_load load;
	const uint8_t *data; /* first byte of the file (mmap) or of the tensor data (read) */
	uint64_t parameters, weight_bytes;
};

struct yi_model *yi_model_load(const char *path, enum yi_load load, enum yi_populate populate,
			       struct yi_error *error);
void yi_model_free(struct yi_model *model);

#endif
