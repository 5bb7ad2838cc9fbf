/* SPDX-License-Identifier: MIT */
/*
 * Dot products of a weight row with a quantised activation row.
 *
 * There are two sets of kernels: the reference, which computes in exactly the order of llama.cpp's
 * plain x86-64 back end, and one for x86-64-v3 (AVX2, FMA, F16C), selected at run time. Integer
 * sums may be reordered, so the second set gives the same bits, except for dot products of floats
 * when exact ones are not requested.
 */
#ifndef YI_DOT_H
#define YI_DOT_H

#include <stddef.h>

#include "tools/runner/quant.h"

/* `n` elements, a multiple of the block; weights of the kernel's type, acts of its `vec`. */
typedef float yi_dot_fn(const void *weights, const void *acts, size_t n);
/* The same for YI_DOT_ROWS rows that lie row_bytes apart. */
typedef void yi_dot_rows_fn(const void *weights, size_t row_bytes, const void *acts, size_t n,
			    float *ret);
typedef void yi_quant_fn(const float *row, void *ret, size_t n);

/* ret[t] = scale * dot(q, keys[t]) for `count` rows of n half floats, `stride` bytes apart. */
typedef void yi_scores_fn(const float *q, const uint8_t *keys, size_t stride, uint32_t count,
			  size_t n, float scale, float *ret);
/* sum[i] += probs[t] * values[t][i] over `count` rows of n half floats, in their order. */
typedef void yi_mix_fn(const float *probs, const uint8_t *values, size_t stride, uint32_t count,
		       size_t n, double *sum);

#define YI_DOT_ROWS 4

struct yi_kernels {
	const char *name;
	yi_dot_fn *dot[YI_TYPE_LIMIT];
	yi_dot_rows_fn *dot_rows[YI_TYPE_LIMIT]; /* NULL: use dot */
	yi_quant_fn *quant[YI_TYPE_LIMIT];       /* by activation type */
	/* bytes of a block of activations; 0: as in files */
	uint32_t packed_bytes[YI_TYPE_LIMIT];
	yi_scores_fn *scores_f16; /* NULL: attention's own loop */
	yi_mix_fn *mix_f16;
};

extern const struct yi_kernels yi_dot_reference;
/* The fastest set with the reference's bits that this CPU runs, and the fastest of all. */
const struct yi_kernels *yi_dot_exact(void);
const struct yi_kernels *yi_dot_fastest(void);

#endif
