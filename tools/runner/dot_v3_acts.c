/* SPDX-License-Identifier: MIT */
/*
 * Exact quantisation of activations, and fast attention and dot products over floats; see
 * dot_v3.h.
 */
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

static inline float sum_of(__m256 x)
{
	__m128 sum = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));

	sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
	return _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)));
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
	const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(a, b),
						 _mm256_packs_epi32(c, d));

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
		block->d = 1.0f / (-127.0f / signed_max);
	}
}

void yi_dot_v3_quant_f16(const float *row, void *ret, size_t n)
{
	uint16_t *halves = ret;
	size_t i = 0;

	for (; i + 8 <= n; i += 8)
		_mm_storeu_si128((__m128i *)(void *)(halves + i),
				 _mm256_cvtps_ph(_mm256_loadu_ps(row + i),
						 _MM_FROUND_TO_NEAREST_INT));
	for (; i < n; i++)
		halves[i] = yi_half_of(row[i]);
}

static inline __m256 load_half(const uint16_t *at)
{
	return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)at));
}

static inline __m256 load_brain(const uint16_t *at)
{
	const __m128i brains = _mm_loadu_si128((const __m128i *)(const void *)at);

	return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(brains), 16));
}

float yi_dot_v3_f32(const void *weights, const void *acts, size_t n)
{
	const float *x = weights, *y = acts;
	__m256 a = _mm256_setzero_ps(), b = a, c = a, d = a;
	float sum;
	size_t i = 0;

	for (; i + 32 <= n; i += 32) {
		a = _mm256_fmadd_ps(_mm256_loadu_ps(x + i), _mm256_loadu_ps(y + i), a);
		b = _mm256_fmadd_ps(_mm256_loadu_ps(x + i + 8), _mm256_loadu_ps(y + i + 8), b);
		c = _mm256_fmadd_ps(_mm256_loadu_ps(x + i + 16), _mm256_loadu_ps(y + i + 16), c);
		d = _mm256_fmadd_ps(_mm256_loadu_ps(x + i + 24), _mm256_loadu_ps(y + i + 24), d);
	}
	sum = sum_of(_mm256_add_ps(_mm256_add_ps(a, b), _mm256_add_ps(c, d)));
	for (; i < n; i++)
		sum += x[i] * y[i];
	return sum;
}

float yi_dot_v3_f16(const void *weights, const void *acts, size_t n)
{
	const uint16_t *x = weights, *y = acts;
	__m256 a = _mm256_setzero_ps(), b = a;
	float sum;
	size_t i = 0;

	for (; i + 16 <= n; i += 16) {
		a = _mm256_fmadd_ps(load_half(x + i), load_half(y + i), a);
		b = _mm256_fmadd_ps(load_half(x + i + 8), load_half(y + i + 8), b);
	}
	sum = sum_of(_mm256_add_ps(a, b));
	for (; i < n; i++)
		sum += yi_half_to_float(x[i]) * yi_half_to_float(y[i]);
	return sum;
}

float yi_dot_v3_bf16(const void *weights, const void *acts, size_t n)
{
	const uint16_t *x = weights, *y = acts;
	__m256 a = _mm256_setzero_ps(), b = a;
	float sum;
	size_t i = 0;

	for (; i + 16 <= n; i += 16) {
		a = _mm256_fmadd_ps(load_brain(x + i), load_brain(y + i), a);
		b = _mm256_fmadd_ps(load_brain(x + i + 8), load_brain(y + i + 8), b);
	}
	sum = sum_of(_mm256_add_ps(a, b));
	for (; i < n; i++)
		sum += yi_brain_to_float(x[i]) * yi_brain_to_float(y[i]);
	return sum;
}

void yi_dot_v3_scores_f16(const float *q, const uint8_t *keys, size_t stride, uint32_t count,
			  size_t n, float scale, float *ret)
{
	for (uint32_t t = 0; t < count; t++, keys += stride) {
		const uint16_t *key = (const uint16_t *)(const void *)keys;
		__m256 a = _mm256_setzero_ps(), b = a;
		float sum;
		size_t i = 0;

		for (; i + 16 <= n; i += 16) {
			a = _mm256_fmadd_ps(_mm256_loadu_ps(q + i), load_half(key + i), a);
			b = _mm256_fmadd_ps(_mm256_loadu_ps(q + i + 8), load_half(key + i + 8), b);
		}
		sum = sum_of(_mm256_add_ps(a, b));
		for (; i < n; i++)
			sum += q[i] * yi_half_to_float(key[i]);
		ret[t] = sum * scale;
	}
}

void yi_dot_v3_mix_f16(const float *probs, const uint8_t *values, size_t stride, uint32_t count,
		       size_t n, float *sum)
{
	for (uint32_t t = 0; t < count; t++, values += stride) {
		const uint16_t *value = (const uint16_t *)(const void *)values;
		const __m256 p = _mm256_set1_ps(probs[t]);
		size_t i = 0;

		for (; i + 8 <= n; i += 8)
			_mm256_storeu_ps(sum + i, _mm256_fmadd_ps(load_half(value + i), p,
								  _mm256_loadu_ps(sum + i)));
		for (; i < n; i++)
			sum[i] += probs[t] * yi_half_to_float(value[i]);
	}
}
