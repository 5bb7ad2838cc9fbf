/* SPDX-License-Identifier: MIT */
/* See quant_vec.h. */
#include "tools/runner/quant_vec.h"

#include <math.h>
#include <string.h>

#include "tools/runner/blocks.h"
#include "tools/runner/half.h"

void yi_quant_vec_f32(const float *row, void *ret, size_t n)
{
	memcpy(ret, row, n * sizeof(*row));
}

void yi_quant_vec_f16(const float *row, void *ret, size_t n)
{
	uint16_t *halves = ret;

	for (size_t i = 0; i < n; i++)
		halves[i] = yi_half_of(row[i]);
}

void yi_quant_vec_bf16(const float *row, void *ret, size_t n)
{
	uint16_t *brains = ret;

	for (size_t i = 0; i < n; i++)
		brains[i] = yi_brain_of(row[i]);
}

/* A number from -127 to 127; NaN, which has no integer, counts as 0. */
static int8_t small_int(float value)
{
	return value >= -128.0f && value <= 127.0f ? (int8_t)(int)value : 0;
}

/* The scale of 32 floats and their rounded multiples of it, halves away from zero. */
static float quantise_32(const float *row, int8_t *ret)
{
	float max = 0, d, id;

	for (int j = 0; j < YI_BLOCK; j++)
		max = fabsf(row[j]) > max ? fabsf(row[j]) : max;
	d = max / 127;
	id = d != 0.0f ? 1.0f / d : 0.0f;
	for (int j = 0; j < YI_BLOCK; j++)
		ret[j] = small_int(roundf(row[j] * id));
	return d;
}

void yi_quant_vec_q8_0(const float *row, void *ret, size_t n)
{
	struct yi_q8_0 *block = ret;

	for (size_t i = 0; i < n / YI_BLOCK; i++, block++, row += YI_BLOCK)
		block->d = yi_half_of(quantise_32(row, block->qs));
}

void yi_quant_vec_q8_1(const float *row, void *ret, size_t n)
{
	struct yi_q8_1 *block = ret;

	for (size_t i = 0; i < n / YI_BLOCK; i++, block++, row += YI_BLOCK) {
		const float d = quantise_32(row, block->qs);
		int sum = 0;

		for (int j = 0; j < YI_BLOCK; j++)
			sum += block->qs[j];
		block->d = yi_half_of(d);
		block->s = yi_half_of((float)sum * d);
	}
}

/* To the nearest integer, halves to even, for |value| < 2^22: the sum's low bits are the result. */
static int nearest(float value)
{
	return (int)(yi_half_bits_of(value + 12582912.0f) & 0x7fffff) - 0x400000;
}

void yi_quant_vec_q8_k(const float *row, void *ret, size_t n)
{
	struct yi_q8_k *block = ret;

	for (size_t i = 0; i < n / YI_SUPER; i++, block++, row += YI_SUPER) {
		float max = 0, scale;

		for (int j = 0; j < YI_SUPER; j++)
			max = fabsf(row[j]) > fabsf(max) ? row[j] : max;
		if (max == 0.0f) {
			memset(block, 0, sizeof(*block));
			continue;
		}
		scale = -127.0f / max;
		for (int j = 0; j < YI_SUPER; j++) {
			const int q = nearest(scale * row[j]);

			block->qs[j] = (int8_t)(q < 127 ? q : 127);
		}
		for (int j = 0; j < 16; j++) {
			int sum = 0;

			for (int l = 0; l < 16; l++)
				sum += block->qs[16 * j + l];
			block->bsums[j] = (int16_t)sum;
		}
		block->d = 1.0f / scale;
	}
}
