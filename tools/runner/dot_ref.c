/* SPDX-License-Identifier: MIT */
/*
 * The reference kernels.  The order of every floating-point operation matters: results are
 * compared bit for bit.  Integer sums may be done in any order, and compilers vectorise them;
 * signed activations are always loaded through int8_t (a cast of an unsigned load was seen to
 * lose its sign in gcc 12's VNNI code).
 */
#include "tools/runner/dot.h"

#include <stdint.h>

#include "tools/runner/blocks.h"
#include "tools/runner/half.h"
#include "tools/runner/quant_vec.h"

static float dot_f32(const void *weights, const void *acts, size_t n)
{
	const float *x = weights, *y = acts;
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += (double)(x[i] * y[i]);
	return (float)sum;
}

static float dot_f16(const void *weights, const void *acts, size_t n)
{
	const uint16_t *x = weights, *y = acts;
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += (double)(yi_half_to_float(x[i]) * yi_half_to_float(y[i]));
	return (float)sum;
}

static float dot_bf16(const void *weights, const void *acts, size_t n)
{
	const uint16_t *x = weights, *y = acts;
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += (double)(yi_brain_to_float(x[i]) * yi_brain_to_float(y[i]));
	return (float)sum;
}

static float dot_q4_0(const void *weights, const void *acts, size_t n)
{
	const struct yi_q4_0 *x = weights;
	const struct yi_q8_0 *y = acts;
	float f = 0;

	for (size_t i = 0; i < n / YI_BLOCK; i++) {
		int sum = 0;

		for (int j = 0; j < 16; j++) {
			sum += ((x[i].qs[j] & 15) - 8) * y[i].qs[j];
			sum += ((x[i].qs[j] >> 4) - 8) * y[i].qs[j + 16];
		}
		f += (float)sum * yi_half_to_float(x[i].d) * yi_half_to_float(y[i].d);
	}
	return f;
}

static float dot_q4_1(const void *weights, const void *acts, size_t n)
{
	const struct yi_q4_1 *x = weights;
	const struct yi_q8_1 *y = acts;
	float f = 0;

	for (size_t i = 0; i < n / YI_BLOCK; i++) {
		int sum = 0;

		for (int j = 0; j < 16; j++) {
			sum += (x[i].qs[j] & 15) * y[i].qs[j];
			sum += (x[i].qs[j] >> 4) * y[i].qs[j + 16];
		}
		f += yi_half_to_float(x[i].d) * yi_half_to_float(y[i].d) * (float)sum +
		     yi_half_to_float(x[i].m) * yi_half_to_float(y[i].s);
	}
	return f;
}

static float dot_q5_0(const void *weights, const void *acts, size_t n)
{
	const struct yi_q5_0 *x = weights;
	const struct yi_q8_0 *y = acts;
	float f = 0;

	for (size_t i = 0; i < n / YI_BLOCK; i++) {
		int sum = 0;

		for (int j = 0; j < YI_BLOCK; j++)
			sum += (yi_blocks_q5(x[i].qs, x[i].qh, j) - 16) * y[i].qs[j];
		f += yi_half_to_float(x[i].d) * yi_half_to_float(y[i].d) * (float)sum;
	}
	return f;
}

static float dot_q5_1(const void *weights, const void *acts, size_t n)
{
	const struct yi_q5_1 *x = weights;
	const struct yi_q8_1 *y = acts;
	float f = 0;

	for (size_t i = 0; i < n / YI_BLOCK; i++) {
		int sum = 0;

		for (int j = 0; j < YI_BLOCK; j++)
			sum += yi_blocks_q5(x[i].qs, x[i].qh, j) * y[i].qs[j];
		f += yi_half_to_float(x[i].d) * yi_half_to_float(y[i].d) * (float)sum +
		     yi_half_to_float(x[i].m) * yi_half_to_float(y[i].s);
	}
	return f;
}

static float dot_q8_0(const void *weights, const void *acts, size_t n)
{
	const struct yi_q8_0 *x = weights, *y = acts;
	float f = 0;

	for (size_t i = 0; i < n / YI_BLOCK; i++) {
		int sum = 0;

		for (int j = 0; j < YI_BLOCK; j++)
			sum += x[i].qs[j] * y[i].qs[j];
		f += (float)sum * (yi_half_to_float(x[i].d) * yi_half_to_float(y[i].d));
	}
	return f;
}

static float dot_q2_k(const void *weights, const void *acts, size_t n)
{
	const struct yi_q2_k *x = weights;
	const struct yi_q8_k *y = acts;
	float f = 0;

	for (size_t i = 0; i < n / YI_SUPER; i++) {
		const float d = y[i].d * yi_half_to_float(x[i].d);
		const float dmin = y[i].d * yi_half_to_float(x[i].dmin);
		int sum = 0, mins = 0;

		for (int j = 0; j < 16; j++) {
			const uint8_t *qs = x[i].qs + 32 * (j / 8) + 16 * (j & 1);
			const int8_t *acts8 = y[i].qs + 16 * j;
			const int shift = 2 * (j / 2 % 4);
			int group = 0;

			for (int l = 0; l < 16; l++)
				group += (qs[l] >> shift & 3) * acts8[l];
			sum += (x[i].scales[j] & 15) * group;
			mins += (x[i].scales[j] >> 4) * y[i].bsums[j];
		}
		f += d * (float)sum - dmin * (float)mins;
	}
	return f;
}

/*
 * The types below keep eight sums, one for each index modulo 8: integers within a block, floats
 * across blocks. `qs` are a block's values.
 */
static void add_lanes(int32_t *lanes, const int8_t *qs, const int8_t *acts, int scale)
{
	for (int l = 0; l < 16; l++)
		lanes[l % 8] += scale * (qs[l] * acts[l]);
}

static float dot_q3_k(const void *weights, const void *acts, size_t n)
{
	const struct yi_q3_k *x = weights;
	const struct yi_q8_k *y = acts;
	float sums[8] = {0}, f = 0;

	for (size_t i = 0; i < n / YI_SUPER; i++) {
		const float d = yi_half_to_float(x[i].d) * y[i].d;
		int32_t lanes[8] = {0};

		for (int j = 0; j < 16; j++) {
			int8_t qs[16];

			for (int l = 0; l < 16; l++)
				qs[l] = (int8_t)yi_blocks_q3(&x[i], j / 8, j / 2 % 4,
							     16 * (j & 1) + l);
			add_lanes(lanes, qs, y[i].qs + 16 * j, yi_blocks_scale3(x[i].scales, j));
		}
		for (int l = 0; l < 8; l++)
			sums[l] += d * (float)lanes[l];
	}
	for (int l = 0; l < 8; l++)
		f += sums[l];
	return f;
}

/* Q4_K and, where the blocks have fifth bits (qh), Q5_K. */
static float add_block_45(const uint8_t *scales, const uint8_t *qs, const uint8_t *qh,
			  const struct yi_q8_k *y, int32_t *lanes)
{
	int mins = 0;

	for (int j = 0; j < 8; j++) {
		int8_t values[32];
		uint8_t scale, min;

		yi_blocks_scale_min(scales, j, &scale, &min);
		for (int l = 0; l < 32; l++) {
			const uint8_t byte = qs[32 * (j / 2) + l];

			values[l] = (int8_t)(j & 1 ? byte >> 4 : byte & 15);
		}
		for (int l = 0; qh && l < 32; l++)
			values[l] = (int8_t)(values[l] + (qh[l] >> j & 1) * 16);
		add_lanes(lanes, values, y->qs + 32 * j, scale);
		add_lanes(lanes, values + 16, y->qs + 32 * j + 16, scale);
		mins += min * (y->bsums[2 * j] + y->bsums[2 * j + 1]);
	}
	return (float)mins;
}

static float dot_q4_k(const void *weights, const void *acts, size_t n)
{
	const struct yi_q4_k *x = weights;
	const struct yi_q8_k *y = acts;
	float sums[8] = {0}, f = 0;

	for (size_t i = 0; i < n / YI_SUPER; i++) {
		const float d = yi_half_to_float(x[i].d) * y[i].d;
		const float dmin = yi_half_to_float(x[i].dmin) * y[i].d;
		int32_t lanes[8] = {0};
		const float mins = add_block_45(x[i].scales, x[i].qs, NULL, &y[i], lanes);

		for (int l = 0; l < 8; l++)
			sums[l] += d * (float)lanes[l];
		f -= dmin * mins;
	}
	for (int l = 0; l < 8; l++)
		f += sums[l];
	return f;
}

static float dot_q5_k(const void *weights, const void *acts, size_t n)
{
	const struct yi_q5_k *x = weights;
	const struct yi_q8_k *y = acts;
	float sums[8] = {0}, f = 0;

	for (size_t i = 0; i < n / YI_SUPER; i++) {
		const float d = yi_half_to_float(x[i].d) * y[i].d;
		const float dmin = yi_half_to_float(x[i].dmin) * y[i].d;
		int32_t lanes[8] = {0};
		const float mins = add_block_45(x[i].scales, x[i].qs, x[i].qh, &y[i], lanes);

		for (int l = 0; l < 8; l++)
			sums[l] += d * (float)lanes[l];
		f -= dmin * mins;
	}
	for (int l = 0; l < 8; l++)
		f += sums[l];
	return f;
}

static float dot_q6_k(const void *weights, const void *acts, size_t n)
{
	const struct yi_q6_k *x = weights;
	const struct yi_q8_k *y = acts;
	float sums[8] = {0}, f = 0;

	for (size_t i = 0; i < n / YI_SUPER; i++) {
		const float d = yi_half_to_float(x[i].d) * y[i].d;
		int32_t lanes[8] = {0};

		for (int j = 0; j < 16; j++) {
			int8_t qs[16];

			for (int l = 0; l < 16; l++)
				qs[l] = (int8_t)yi_blocks_q6(&x[i], j / 8, j / 2 % 4,
							     16 * (j & 1) + l);
			add_lanes(lanes, qs, y[i].qs + 16 * j, x[i].scales[j]);
		}
		for (int l = 0; l < 8; l++)
			sums[l] += d * (float)lanes[l];
	}
	for (int l = 0; l < 8; l++)
		f += sums[l];
	return f;
}

const struct yi_kernels yi_dot_reference = {
	.name = "reference",
	.dot =
		{
			[YI_F32] = dot_f32,
			[YI_F16] = dot_f16,
			[YI_BF16] = dot_bf16,
			[YI_Q4_0] = dot_q4_0,
			[YI_Q4_1] = dot_q4_1,
			[YI_Q5_0] = dot_q5_0,
			[YI_Q5_1] = dot_q5_1,
			[YI_Q8_0] = dot_q8_0,
			[YI_Q2_K] = dot_q2_k,
			[YI_Q3_K] = dot_q3_k,
			[YI_Q4_K] = dot_q4_k,
			[YI_Q5_K] = dot_q5_k,
			[YI_Q6_K] = dot_q6_k,
		},
	.quant =
		{
			[YI_F32] = yi_quant_vec_f32,
			[YI_F16] = yi_quant_vec_f16,
			[YI_BF16] = yi_quant_vec_bf16,
			[YI_Q8_0] = yi_quant_vec_q8_0,
			[YI_Q8_1] = yi_quant_vec_q8_1,
			[YI_Q8_K] = yi_quant_vec_q8_k,
		},
};
