/* SPDX-License-Identifier: MIT */
/*
 * Fast dot products of 256-element blocks; see dot_v3.h.
 *
 * Weights are taken as the unsigned numbers they are stored as; what is to be subtracted from
 * each (a minimum or a constant) is subtracted once per group, by the activations' group sums.
 */
#include <immintrin.h>
#include <string.h>

#include "tools/runner/blocks.h"
#include "tools/runner/dot_v3.h"

static inline float sum_of(__m256 x)
{
	__m128 sum = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));

	sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
	return _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)));
}

static inline __m256i load32(const void *at)
{
	return _mm256_loadu_si256((const __m256i *)at);
}

/* Adds scale * weights * activations in eight lanes; `scales` holds 16 bits for each pair. */
static inline __m256i add_scaled(__m256i sum, __m256i weights, const int8_t *acts, __m256i scales)
{
	const __m256i pairs = _mm256_maddubs_epi16(weights, load32(acts));

	return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, scales));
}

/* One scale for the first, another for the last 16 of 32 elements. */
static inline __m256i two_scales(const int16_t *scales)
{
	return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_set1_epi16(scales[0])),
				       _mm_set1_epi16(scales[1]), 1);
}

/* Sums over 16 groups of what is to be subtracted: factor by the activations' sum. */
static inline __m256i group_sums(const int16_t *bsums, const int16_t *factors)
{
	return _mm256_madd_epi16(load32(bsums), load32(factors));
}

/* Eight scales, doubled to fit 16 groups, and eight minima likewise. */
static inline void unpack_scales(const uint8_t *packed, int16_t *ret_scales, int16_t *ret_mins)
{
	for (int j = 0; j < 8; j++) {
		uint8_t scale, min;

		yi_blocks_scale_min(packed, j, &scale, &min);
		ret_scales[j] = scale;
		ret_mins[2 * j] = min;
		ret_mins[2 * j + 1] = min;
	}
}

/* f + scale * sums, lane by lane. */
static inline __m256 add_lanes(__m256 f, float scale, __m256i sums)
{
	return _mm256_fmadd_ps(_mm256_set1_ps(scale), _mm256_cvtepi32_ps(sums), f);
}

float yi_dot_v3_q2_k(const void *weights, const void *acts, size_t n)
{
	const struct yi_q2_k *x = weights;
	const struct yi_q8_k *y = acts;
	__m256 f = _mm256_setzero_ps();

	for (size_t i = 0; i < n / YI_SUPER; i++) {
		const float d = y[i].d * _cvtsh_ss(x[i].d), dmin = y[i].d * _cvtsh_ss(x[i].dmin);
		int16_t scales[16], mins[16];
		__m256i sums = _mm256_setzero_si256();

		for (int j = 0; j < 16; j++) {
			scales[j] = x[i].scales[j] & 15;
			mins[j] = x[i].scales[j] >> 4;
		}
		for (int half = 0; half < 2; half++) {
			__m256i qs = load32(x[i].qs + 32 * half);

			for (int k = 0; k < 4; k++, qs = _mm256_srli_epi16(qs, 2))
				sums = add_scaled(sums,
						  _mm256_and_si256(qs, _mm256_set1_epi8(3)),
						  y[i].qs + 128 * half + 32 * k,
						  two_scales(scales + 8 * half + 2 * k));
		}
		f = add_lanes(f, d, sums);
		f = add_lanes(f, -dmin, group_sums(y[i].bsums, mins));
	}
	return sum_of(f);
}

float yi_dot_v3_q3_k(const void *weights, const void *acts, size_t n)
{
	const struct yi_q3_k *x = weights;
	const struct yi_q8_k *y = acts;
	__m256 f = _mm256_setzero_ps();

	for (size_t i = 0; i < n / YI_SUPER; i++) {
		const float d = y[i].d * _cvtsh_ss(x[i].d);
		__m256i high = load32(x[i].hmask), sums = _mm256_setzero_si256();
		int16_t scales[16];

		for (int j = 0; j < 16; j++)
			scales[j] = (int16_t)yi_blocks_scale3(x[i].scales, j);
		for (int half = 0; half < 2; half++) {
			__m256i qs = load32(x[i].qs + 32 * half);

			for (int k = 0; k < 4; k++) {
				const __m256i bit = _mm256_and_si256(high, _mm256_set1_epi8(1));
				const __m256i low = _mm256_and_si256(qs, _mm256_set1_epi8(3));

				sums = add_scaled(sums,
						  _mm256_or_si256(low, _mm256_slli_epi16(bit, 2)),
						  y[i].qs + 128 * half + 32 * k,
						  two_scales(scales + 8 * half + 2 * k));
				qs = _mm256_srli_epi16(qs, 2);
				high = _mm256_srli_epi16(high, 1);
			}
		}
		/* Weights are three bits less 4. */
		sums = _mm256_sub_epi32(sums,
					_mm256_slli_epi32(group_sums(y[i].bsums, scales), 2));
		f = add_lanes(f, d, sums);
	}
	return sum_of(f);
}

float yi_dot_v3_q4_k(const void *weights, const void *acts, size_t n)
{
	const struct yi_q4_k *x = weights;
	const struct yi_q8_k *y = acts;
	const __m256i low = _mm256_set1_epi8(15);
	__m256 f = _mm256_setzero_ps();

	for (size_t i = 0; i < n / YI_SUPER; i++) {
		const float d = y[i].d * _cvtsh_ss(x[i].d), dmin = y[i].d * _cvtsh_ss(x[i].dmin);
		int16_t scales[8], mins[16];
		__m256i sums = _mm256_setzero_si256();

		unpack_scales(x[i].scales, scales, mins);
		for (int j = 0; j < 4; j++) {
			const __m256i qs = load32(x[i].qs + 32 * j);

			sums = add_scaled(sums, _mm256_and_si256(qs, low), y[i].qs + 64 * j,
					  _mm256_set1_epi16(scales[2 * j]));
			sums = add_scaled(sums, _mm256_and_si256(_mm256_srli_epi16(qs, 4), low),
					  y[i].qs + 64 * j + 32,
					  _mm256_set1_epi16(scales[2 * j + 1]));
		}
		f = add_lanes(f, d, sums);
		f = add_lanes(f, -dmin, group_sums(y[i].bsums, mins));
	}
	return sum_of(f);
}

float yi_dot_v3_q5_k(const void *weights, const void *acts, size_t n)
{
	const struct yi_q5_k *x = weights;
	const struct yi_q8_k *y = acts;
	const __m256i low = _mm256_set1_epi8(15), bit = _mm256_set1_epi8(1);
	__m256 f = _mm256_setzero_ps();

	for (size_t i = 0; i < n / YI_SUPER; i++) {
		const float d = y[i].d * _cvtsh_ss(x[i].d), dmin = y[i].d * _cvtsh_ss(x[i].dmin);
		int16_t scales[8], mins[16];
		__m256i sums = _mm256_setzero_si256(), high = load32(x[i].qh);

		unpack_scales(x[i].scales, scales, mins);
		for (int j = 0; j < 8; j++, high = _mm256_srli_epi16(high, 1)) {
			__m256i qs = load32(x[i].qs + 32 * (j / 2));

			qs = _mm256_and_si256(j & 1 ? _mm256_srli_epi16(qs, 4) : qs, low);
			qs = _mm256_or_si256(qs, _mm256_slli_epi16(_mm256_and_si256(high, bit), 4));
			sums = add_scaled(sums, qs, y[i].qs + 32 * j, _mm256_set1_epi16(scales[j]));
		}
		f = add_lanes(f, d, sums);
		f = add_lanes(f, -dmin, group_sums(y[i].bsums, mins));
	}
	return sum_of(f);
}

float yi_dot_v3_q6_k(const void *weights, const void *acts, size_t n)
{
	const struct yi_q6_k *x = weights;
	const struct yi_q8_k *y = acts;
	const __m256i low = _mm256_set1_epi8(15), two = _mm256_set1_epi8(3);
	__m256 f = _mm256_setzero_ps();

	for (size_t i = 0; i < n / YI_SUPER; i++) {
		const float d = y[i].d * _cvtsh_ss(x[i].d);
		__m256i sums = _mm256_setzero_si256();
		int16_t scales[16];

		for (int j = 0; j < 16; j++)
			scales[j] = x[i].scales[j];
		for (int half = 0; half < 2; half++) {
			__m256i high = load32(x[i].qh + 32 * half);

			for (int k = 0; k < 4; k++, high = _mm256_srli_epi16(high, 2)) {
				__m256i qs = load32(x[i].ql + 64 * half + 32 * (k & 1));

				qs = _mm256_and_si256(k < 2 ? qs : _mm256_srli_epi16(qs, 4), low);
				qs = _mm256_or_si256(
					qs, _mm256_slli_epi16(_mm256_and_si256(high, two), 4));
				sums = add_scaled(sums, qs, y[i].qs + 128 * half + 32 * k,
						  two_scales(scales + 8 * half + 2 * k));
			}
		}
		/* Weights are six bits less 32. */
		sums = _mm256_sub_epi32(sums,
					_mm256_slli_epi32(group_sums(y[i].bsums, scales), 5));
		f = add_lanes(f, d, sums);
	}
	return sum_of(f);
}
