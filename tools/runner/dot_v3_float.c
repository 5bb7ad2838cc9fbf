/* SPDX-License-Identifier: MIT */
/*
 * Floats: fast dot products, and exact attention over half floats; see dot_v3.h.
 *
 * The reference sums rounded products in a double, element by element.  Attention does so for
 * eight positions side by side, or for several elements of the values side by side, so that each
 * sum still runs in its order.
 */
#include <immintrin.h>

#include "tools/runner/dot_v3.h"
#include "tools/runner/half.h"

static inline float sum_of(__m256 x)
{
	__m128 sum = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));

	sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
	return _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)));
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

/* Products of a query's four elements with those of four keys, turned: ret[i] is element i of
 * each of the keys. */
static inline void turned_products(const uint16_t *const keys[4], size_t at, __m128 q,
				   __m128 ret[4])
{
	for (int r = 0; r < 4; r++) {
		const __m128i halves =
			_mm_loadl_epi64((const __m128i *)(const void *)(keys[r] + at));

		ret[r] = _mm_mul_ps(_mm_cvtph_ps(halves), q);
	}
	_MM_TRANSPOSE4_PS(ret[0], ret[1], ret[2], ret[3]);
}

/* Scores of eight keys; there are two chains of additions, because each waits for itself. */
static void score_eight(const float *q, const uint16_t *const keys[8], size_t n, float scale,
			float ret[8])
{
	__m256d a = _mm256_setzero_pd(), b = a;
	const __m128 factor = _mm_set1_ps(scale);
	double sums[8];
	size_t i = 0;

	for (; i + 4 <= n; i += 4) {
		const __m128 four = _mm_loadu_ps(q + i);
		__m128 x[4], y[4];

		turned_products(keys, i, four, x);
		turned_products(keys + 4, i, four, y);
		for (int j = 0; j < 4; j++) {
			a = _mm256_add_pd(a, _mm256_cvtps_pd(x[j]));
			b = _mm256_add_pd(b, _mm256_cvtps_pd(y[j]));
		}
	}
	if (i == n) {
		_mm_storeu_ps(ret, _mm_mul_ps(_mm256_cvtpd_ps(a), factor));
		_mm_storeu_ps(ret + 4, _mm_mul_ps(_mm256_cvtpd_ps(b), factor));
		return;
	}
	_mm256_storeu_pd(sums, a);
	_mm256_storeu_pd(sums + 4, b);
	for (int r = 0; r < 8; r++) {
		for (size_t j = i; j < n; j++)
			sums[r] += (double)(yi_half_to_float(keys[r][j]) * q[j]);
		ret[r] = (float)sums[r] * scale;
	}
}

void yi_dot_v3_scores_f16(const float *q, const uint8_t *keys, size_t stride, uint32_t count,
			  size_t n, float scale, float *ret)
{
	for (uint32_t t = 0; t < count; t += 8) {
		const uint32_t here = count - t < 8 ? count - t : 8;
		const uint16_t *rows[8];
		float scores[8];

		for (uint32_t r = 0; r < 8; r++)
			rows[r] = (const uint16_t *)(const void *)(keys + (t + (r < here ? r : 0)) *
										  stride);
		score_eight(q, rows, n, scale, scores);
		for (uint32_t r = 0; r < here; r++)
			ret[t + r] = scores[r];
	}
}

/* Adds to 16 sums. */
static void mix_sixteen(const float *probs, const uint8_t *values, size_t stride, uint32_t count,
			double *sum)
{
	__m256d sums[4];

	for (int j = 0; j < 4; j++)
		sums[j] = _mm256_loadu_pd(sum + 4 * j);
	for (uint32_t t = 0; t < count; t++, values += stride) {
		const uint16_t *value = (const uint16_t *)(const void *)values;
		const __m256 p = _mm256_set1_ps(probs[t]);

		for (int j = 0; j < 2; j++) {
			const __m256 x = _mm256_mul_ps(load_half(value + 8 * j), p);

			sums[2 * j] = _mm256_add_pd(sums[2 * j],
						    _mm256_cvtps_pd(_mm256_castps256_ps128(x)));
			sums[2 * j + 1] = _mm256_add_pd(
				sums[2 * j + 1], _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)));
		}
	}
	for (int j = 0; j < 4; j++)
		_mm256_storeu_pd(sum + 4 * j, sums[j]);
}

void yi_dot_v3_mix_f16(const float *probs, const uint8_t *values, size_t stride, uint32_t count,
		       size_t n, double *sum)
{
	size_t i = 0;

	for (; i + 16 <= n; i += 16)
		mix_sixteen(probs, values + 2 * i, stride, count, sum + i);
	for (; i < n; i++)
		for (uint32_t t = 0; t < count; t++) {
			uint16_t half;

			__builtin_memcpy(&half, values + t * stride + 2 * i, sizeof(half));
			sum[i] += (double)(yi_half_to_float(half) * probs[t]);
		}
}
