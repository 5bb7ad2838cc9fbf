/* SPDX-License-Identifier: MIT */
/*
 * Operations of the forward pass on single rows: normalisation, rotation, soft maximum, gating.
 * Each computes in the order that llama.cpp's plain x86-64 back end does.
 */
#ifndef YI_OPS_H
#define YI_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct yi_rope {
	uint32_t head_dim;
	float base;
	const float *freqs; /* divisors of the angles; NULL: none */
};

void yi_ops_rms_norm(const float *row, const float *weights, float eps, float *ret, size_t n);
/* Cosine and sine of each pair's angle at a position: head_dim floats, alternating. */
void yi_ops_rope_angles(const struct yi_rope *rope, float position, float *ret_angles);
/* Rotates the pairs (2i, 2i + 1) of each head. */
void yi_ops_rotate(float *row, uint32_t heads, uint32_t head_dim, const float *angles);
/* In place; `scores` has room for n rounded up to 4. */
void yi_ops_soft_max(float *scores, size_t n);
/* gate[i] = silu(gate[i]) * up[i] */
void yi_ops_silu_mul(float *gate, const float *up, size_t n);
void yi_ops_add(float *sum, const float *row, size_t n);
bool yi_ops_finite(const float *row, size_t n);

#endif
