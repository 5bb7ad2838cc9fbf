/* SPDX-License-Identifier: MIT */
/*
 * Model files made from a seed: real format, real shapes, a working tokenizer, random weights.
 *
 * Written front to back in pieces, so that a file of any size takes a few MiB of memory.  The
 * same options give the same bytes on every machine.
 */
#ifndef YI_MAKE_MODEL_H
#define YI_MAKE_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "tools/runner/error.h"
#include "tools/runner/quant.h"

struct yi_shape {
	const char *name;
	uint32_t n_layer, n_embd, n_head, n_head_kv, n_ff, n_vocab, n_ctx;
	float rope_base;
	bool tied;       /* the output matrix is the embedding */
	bool rope_freqs; /* with a tensor of divisors */
	bool byte_level; /* tokenizer of the byte-level kind, else SentencePiece's */
};

/* NULL: unknown. */
const struct yi_shape *yi_make_model_shape(const char *name);

struct yi_make_model {
	struct yi_shape shape;
	enum yi_type type;
	bool mixed; /* K_M: more bits where they count, as quantisers choose */
	uint64_t seed;
};

/* 0 or a negative errno with error filled; an incomplete file is removed. */
int yi_make_model(const struct yi_make_model *make, const char *path, struct yi_error *error);

/* The parts of the file, in the other make_*.c. */

/* Writes values of the metadata and counts them. */
struct yi_make_writer {
	FILE *out;
	uint64_t at;       /* bytes written */
	uint64_t n_values; /* values written */
	int error;         /* errno of the first write that failed */
};

void yi_make_bytes(struct yi_make_writer *writer, const void *bytes, size_t n);
void yi_make_text(struct yi_make_writer *writer, const char *text, size_t n);
void yi_make_value_text(struct yi_make_writer *writer, const char *key, const char *text);
void yi_make_value_u32(struct yi_make_writer *writer, const char *key, uint32_t number);
void yi_make_value_f32(struct yi_make_writer *writer, const char *key, float number);
void yi_make_value_bool(struct yi_make_writer *writer, const char *key, bool truth);
/* The head of an array of a GGUF element type; the elements follow. */
void yi_make_array(struct yi_make_writer *writer, const char *key, uint32_t type, uint64_t count);

/* Writes the tokenizer.*; 0 or -ENOMEM. */
int yi_make_vocab(struct yi_make_writer *writer, const struct yi_shape *shape);

/* splitmix64: small, good enough for weights, the same everywhere. */
struct yi_make_random {
	uint64_t state;
};

static inline uint64_t yi_make_next(struct yi_make_random *random)
{
	uint64_t z = random->state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* Fills blocks of a type with weights of standard deviation `sigma`. */
void yi_make_weights(enum yi_type type, uint8_t *blocks, size_t bytes, float sigma,
		     struct yi_make_random *random);

#endif
