/* SPDX-License-Identifier: MIT */
/* The table of types and the way from blocks to floats; see quant.h. */
#include "tools/runner/quant.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "tools/runner/blocks.h"
#include "tools/runner/half.h"
#include "tools/runner/quant_vec.h"

static void dequant_f32(const void *row, float *ret, size_t n)
{
	memcpy(ret, row, n * sizeof(*ret));
}

static void dequant_f16(const void *row, float *ret, size_t n)
{
	const uint16_t *halves = row;

	for (size_t i = 0; i < n; i++)
		ret[i] = yi_half_to_float(halves[i]);
}

static void dequant_bf16(const void *row, float *ret, size_t n)
{
	const uint16_t *brains = row;

	for (size_t i = 0; i < n; i++)
		ret[i] = yi_brain_to_float(brains[i]);
}

static void dequant_q4_0(const void *row, float *ret, size_t n)
{
	const struct yi_q4_0 *block = row;

	for (size_t i = 0; i < n / YI_BLOCK; i++, block++, ret += YI_BLOCK) {
		const float d = yi_half_to_float(block->d);

		for (int j = 0; j < 16; j++) {
			ret[j] = (float)((block->qs[j] & 15) - 8) * d;
			ret[j + 16] = (float)((block->qs[j] >> 4) - 8) * d;
		}
	}
}

static void dequant_q4_1(const void *row, float *ret, size_t n)
{
	const struct yi_q4_1 *block = row;

	for (size_t i = 0; i < n / YI_BLOCK; i++, block++, ret += YI_BLOCK) {
		const float d = yi_half_to_float(block->d), m = yi_half_to_float(block->m);

		for (int j = 0; j < 16; j++) {
			ret[j] = (float)(block->qs[j] & 15) * d + m;
			ret[j + 16] = (float)(block->qs[j] >> 4) * d + m;
		}
	}
}

static void dequant_q5_0(const void *row, float *ret, size_t n)
{
	const struct yi_q5_0 *block = row;

	for (size_t i = 0; i < n / YI_BLOCK; i++, block++, ret += YI_BLOCK) {
		const float d = yi_half_to_float(block->d);

		for (int j = 0; j < YI_BLOCK; j++)
			ret[j] = (float)(yi_blocks_q5(block->qs, block->qh, j) - 16) * d;
	}
}

static void dequant_q5_1(const void *row, float *ret, size_t n)
{
	const struct yi_q5_1 *block = row;

	for (size_t i = 0; i < n / YI_BLOCK; i++, block++, ret += YI_BLOCK) {
		const float d = yi_half_to_float(block->d), m = yi_half_to_float(block->m);

		for (int j = 0; j < YI_BLOCK; j++)
			ret[j] = (float)yi_blocks_q5(block->qs, block->qh, j) * d + m;
	}
}

static void dequant_q8_0(const void *row, float *ret, size_t n)
{
	const struct yi_q8_0 *block = row;

	for (size_t i = 0; i < n / YI_BLOCK; i++, block++, ret += YI_BLOCK) {
		const float d = yi_half_to_float(block->d);

		for (int j = 0; j < YI_BLOCK; j++)
			ret[j] = (float)block->qs[j] * d;
	}
}

static void dequant_q2_k(const void *row, float *ret, size_t n)
{
	const struct yi_q2_k *block = row;

	for (size_t i = 0; i < n / YI_SUPER; i++, block++, ret += YI_SUPER) {
		const float d = yi_half_to_float(block->d), dmin = yi_half_to_float(block->dmin);

		for (int j = 0; j < YI_SUPER; j++) {
			const int half = j / 128, k = j / 32 % 4, l = j % 32;
			const uint8_t scale = block->scales[j / 16];
			const int q = block->qs[32 * half + l] >> 2 * k & 3;

			ret[j] = d * (float)(scale & 15) * (float)q - dmin * (float)(scale >> 4);
		}
	}
}

static void dequant_q3_k(const void *row, float *ret, size_t n)
{
	const struct yi_q3_k *block = row;

	for (size_t i = 0; i < n / YI_SUPER; i++, block++, ret += YI_SUPER) {
		const float d = yi_half_to_float(block->d);

		for (int j = 0; j < YI_SUPER; j++) {
			const float scale = d * (float)yi_blocks_scale3(block->scales, j / 16);

			ret[j] = scale * (float)yi_blocks_q3(block, j / 128, j / 32 % 4, j % 32);
		}
	}
}

static void dequant_q4_k(const void *row, float *ret, size_t n)
{
	const struct yi_q4_k *block = row;

	for (size_t i = 0; i < n / YI_SUPER; i++, block++) {
		const float d = yi_half_to_float(block->d), dmin = yi_half_to_float(block->dmin);

		for (int j = 0; j < 8; j++, ret += 32) {
			uint8_t scale, min;

			yi_blocks_scale_min(block->scales, j, &scale, &min);
			for (int l = 0; l < 32; l++) {
				const uint8_t byte = block->qs[32 * (j / 2) + l];
				const int q = j & 1 ? byte >> 4 : byte & 15;

				ret[l] = d * (float)scale * (float)q - dmin * (float)min;
			}
		}
	}
}

static void dequant_q5_k(const void *row, float *ret, size_t n)
{
	const struct yi_q5_k *block = row;

	for (size_t i = 0; i < n / YI_SUPER; i++, block++) {
		const float d = yi_half_to_float(block->d), dmin = yi_half_to_float(block->dmin);

		for (int j = 0; j < 8; j++, ret += 32) {
			uint8_t scale, min;

			yi_blocks_scale_min(block->scales, j, &scale, &min);
			for (int l = 0; l < 32; l++) {
				const uint8_t byte = block->qs[32 * (j / 2) + l];
				const int q = (j & 1 ? byte >> 4 : byte & 15) +
					      (block->qh[l] >> j & 1) * 16;

				ret[l] = d * (float)scale * (float)q - dmin * (float)min;
			}
		}
	}
}

static void dequant_q6_k(const void *row, float *ret, size_t n)
{
	const struct yi_q6_k *block = row;

	for (size_t i = 0; i < n / YI_SUPER; i++, block++, ret += YI_SUPER) {
		const float d = yi_half_to_float(block->d);

		for (int j = 0; j < YI_SUPER; j++)
			ret[j] = d * (float)block->scales[j / 16] *
				 (float)yi_blocks_q6(block, j / 128, j / 32 % 4, j % 32);
	}
}

static const struct yi_type_traits types[YI_TYPE_LIMIT] = {
	[YI_F32] = {"F32", 1, 4, YI_F32, 1, dequant_f32, yi_quant_vec_f32},
	[YI_F16] = {"F16", 1, 2, YI_F16, 1, dequant_f16, yi_quant_vec_f16},
	[YI_BF16] = {"BF16", 1, 2, YI_BF16, 1, dequant_bf16, yi_quant_vec_bf16},
	[YI_Q4_0] = {"Q4_0", 32, 18, YI_Q8_0, 1, dequant_q4_0, NULL},
	[YI_Q4_1] = {"Q4_1", 32, 20, YI_Q8_1, 1, dequant_q4_1, NULL},
	[YI_Q5_0] = {"Q5_0", 32, 22, YI_Q8_0, 1, dequant_q5_0, NULL},
	[YI_Q5_1] = {"Q5_1", 32, 24, YI_Q8_1, 1, dequant_q5_1, NULL},
	[YI_Q8_0] = {"Q8_0", 32, 34, YI_Q8_0, 1, dequant_q8_0, yi_quant_vec_q8_0},
	[YI_Q8_1] = {"Q8_1", 32, 36, YI_Q8_1, 0, NULL, yi_quant_vec_q8_1},
	[YI_Q2_K] = {"Q2_K", 256, 84, YI_Q8_K, 1, dequant_q2_k, NULL},
	[YI_Q3_K] = {"Q3_K", 256, 110, YI_Q8_K, 1, dequant_q3_k, NULL},
	[YI_Q4_K] = {"Q4_K", 256, 144, YI_Q8_K, 1, dequant_q4_k, NULL},
	[YI_Q5_K] = {"Q5_K", 256, 176, YI_Q8_K, 1, dequant_q5_k, NULL},
	[YI_Q6_K] = {"Q6_K", 256, 210, YI_Q8_K, 1, dequant_q6_k, NULL},
	[YI_Q8_K] = {"Q8_K", 256, 292, YI_Q8_K, 0, NULL, yi_quant_vec_q8_k},
};

const struct yi_type_traits *yi_type_find(uint32_t type)
{
	return type < YI_TYPE_LIMIT && types[type].name ? &types[type] : NULL;
}

const struct yi_type_traits *yi_type_by_name(const char *name, enum yi_type *ret_type)
{
	for (uint32_t i = 0; i < YI_TYPE_LIMIT; i++) {
		if (types[i].name && strcasecmp(types[i].name, name) == 0) {
			*ret_type = (enum yi_type)i;
			return &types[i];
		}
	}
	return NULL;
}
