/* SPDX-License-Identifier: MIT */
/* Exact quantisation of activations; see dot_v3.h. */
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "tools/runner/blocks.h"
#include "tools/runner/dot_v3.h"
#include "tools/runner/half.h"

static inline __m256 absolute(__m256 x)
{
	return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x);
}

static inline float max_of(__m256 x)
{
	__m128 max = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));

	max = _mm_max_ps(max, _mm_movehl_ps(max, max));
	return _mm_cvtss_f32(_mm_max_ss(max, _mm_movehdup_ps(max)));
}

/* Halves away from zero: adding just less than a half, then cutting, is exact below 2^22. */
static inline __m256i round_away(__m256 x)
{
	const __m256 sign = _mm256_and_ps(x, _mm256_set1_ps(-0.0f));

	return _mm256_cvttps_epi32(
		_mm256_add_ps(x, _mm256_or_ps(sign, _mm256_set1_ps(0x1.fffffep-2f))));
}

/* 32 small integers in lanes of 32 bits to bytes, in order. */
static inline __m256i pack32(__m256i a, __m256i b, __m256i c, __m256i d)
{
	const __m256i bytes =
		_mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));

	return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

/* Returns the scale; ret_qs: 32 bytes. */
static inline float quantise_32(const float *row, __m256i *ret_qs)
{
	__m256 x[4], max = _mm256_setzero_ps(), id;
	float d;

	for (int j = 0; j < 4; j++) {
		x[j] = _mm256_loadu_ps(row + 8 * j);
		max = _mm256_max_ps(absolute(x[j]), max);
	}
	d = max_of(max) / 127;
	id = _mm256_set1_ps(d != 0.0f ? 1.0f / d : 0.0f);
	*ret_qs = pack32(round_away(_mm256_mul_ps(x[0], id)), round_away(_mm256_mul_ps(x[1], id)),
			 round_away(_mm256_mul_ps(x[2], id)), round_away(_mm256_mul_ps(x[3], id)));
	return d;
}

/*
 * The kernels read activations in a form of their own, YI_DOT_V3_BLOCK bytes for each 32: all
 * quants, then all scales as floats (already rounded to halves), then all sums.  For Q8_0 a sum
 * is an integer, for Q8_1 it is scaled and rounded as in a file.
 */
static void quantise(const float *row, void *ret, size_t n, enum yi_type type)
{
	int8_t *qs = ret;
	float *d = (float *)(void *)(qs + n), *s = d + n / YI_BLOCK;
	int32_t *sums = (int32_t *)(void *)s;

	for (size_t i = 0; i < n / YI_BLOCK; i++) {
		int32_t lanes[8], sum = 0;
		__m256i q;
		const float scale = quantise_32(row + i * YI_BLOCK, &q);

		_mm256_storeu_si256((__m256i *)(void *)(qs + i * YI_BLOCK), q);
		q = _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_set1_epi8(1), q),
				      _mm256_set1_epi16(1));
		_mm256_storeu_si256((__m256i *)(void *)lanes, q);
		for (int l = 0; l < 8; l++)
			sum += lanes[l];
		d[i] = yi_half_to_float(yi_half_of(scale));
		if (type == YI_Q8_0)
			sums[i] = sum;
		else
			s[i] = yi_half_to_float(yi_half_of((float)sum * scale));
	}
}

void yi_dot_v3_quant_q8_0(const float *row, void *ret, size_t n)
{
	quantise(row, ret, n, YI_Q8_0);
}

void yi_dot_v3_quant_q8_1(const float *row, void *ret, size_t n)
{
	quantise(row, ret, n, YI_Q8_1);
}

/* Brings 32 bytes into the order of dot_v3_k.c: j, j + 8, j + 16, j + 24 for j = 0 .. 7. */
static void order_by_sums(int8_t *qs)
{
	int8_t from[YI_BLOCK];

	memcpy(from, qs, sizeof(from));
	for (int j = 0; j < YI_BLOCK; j++)
		qs[j] = from[j / 4 + j % 4 * 8];
}

/* The first element of 256 whose absolute value is `max`. */
static float first_of(const float *row, float max)
{
	for (int j = 0; j < YI_SUPER; j++)
		if (fabsf(row[j]) == max)
			return row[j];
	return 0;
}

void yi_dot_v3_quant_q8_k(const float *row, void *ret, size_t n)
{
	struct yi_q8_k *block = ret;

	for (size_t i = 0; i < n / YI_SUPER; i++, block++, row += YI_SUPER) {
		__m256 max = _mm256_setzero_ps(), scale;
		float signed_max;

		for (int j = 0; j < YI_SUPER; j += 8)
			max = _mm256_max_ps(absolute(_mm256_loadu_ps(row + j)), max);
		signed_max = first_of(row, max_of(max));
		if (signed_max == 0.0f) {
			memset(block, 0, sizeof(*block));
			continue;
		}
		scale = _mm256_set1_ps(-127.0f / signed_max);
		for (int j = 0; j < YI_SUPER; j += 32) {
			__m256i q[4];

			/* Conversion rounds to the nearest, halves to even; 128 saturates. */
			for (int k = 0; k < 4; k++)
				q[k] = _mm256_cvtps_epi32(
					_mm256_mul_ps(scale, _mm256_loadu_ps(row + j + 8 * k)));
			_mm256_storeu_si256((__m256i *)(void *)(block->qs + j),
					    pack32(q[0], q[1], q[2], q[3]));
		}
		for (int j = 0; j < 16; j++) {
			int sum = 0;

			for (int l = 0; l < 16; l++)
				sum += block->qs[16 * j + l];
			block->bsums[j] = (int16_t)sum;
		}
		for (int j = 0; j < YI_SUPER; j += YI_BLOCK)
			order_by_sums(block->qs + j);
		block->d = 1.0f / (-127.0f / signed_max);
	}
}

void yi_dot_v3_quant_f16(const float *row, void *ret, size_t n)
{
	uint16_t *halves = ret;
	size_t i = 0;

	for (; i + 8 <= n; i += 8)
		_mm_storeu_si128(
			(__m128i *)(void *)(halves + i),
			_mm256_cvtps_ph(_mm256_loadu_ps(row + i), _MM_FROUND_TO_NEAREST_INT));
	for (; i < n; i++)
		halves[i] = yi_half_of(row[i]);
}
