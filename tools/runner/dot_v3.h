/* SPDX-License-Identifier: MIT */
/*
 * Kernels for x86-64-v3 (AVX2, FMA, F16C), compiled with those flags and called only where the
 * CPU has them.  "Exact" ones give the reference's bits: integers are summed in any order, floats
 * in the reference's.
 */
#ifndef YI_DOT_V3_H
#define YI_DOT_V3_H

#include "tools/runner/dot.h"

/* Exact, four rows at once. */
yi_dot_rows_fn yi_dot_v3_q4_0, yi_dot_v3_q4_1, yi_dot_v3_q5_0, yi_dot_v3_q5_1, yi_dot_v3_q8_0;

yi_dot_fn yi_dot_v3_one_q4_0, yi_dot_v3_one_q4_1, yi_dot_v3_one_q5_0, yi_dot_v3_one_q5_1,
	yi_dot_v3_one_q8_0;

/*
 * Exact quantisation of activations in layouts that only these kernels read: Q8_0 and Q8_1 take
 * YI_DOT_V3_BLOCK bytes per 32 elements; Q8_K is as in files, except for the order of its elements.
 */
#define YI_DOT_V3_BLOCK 40
yi_quant_fn yi_dot_v3_quant_q8_0, yi_dot_v3_quant_q8_1, yi_dot_v3_quant_q8_k, yi_dot_v3_quant_f16;

yi_dot_fn yi_dot_v3_q2_k, yi_dot_v3_q3_k, yi_dot_v3_q4_k, yi_dot_v3_q5_k, yi_dot_v3_q6_k;
yi_scores_fn yi_dot_v3_scores_f16;
yi_mix_fn yi_dot_v3_mix_f16;

/* Fast: floats are summed in eight lanes, with fused multiply-add. */
yi_dot_fn yi_dot_v3_f32, yi_dot_v3_f16, yi_dot_v3_bf16;

#endif
