/* SPDX-License-Identifier: MIT */
/*
 * Exact dot products of 256-element blocks; see dot_v3.h.
 *
 * The reference keeps eight sums by the element's number modulo 8. Elements of 32 are therefore
 * put in an order where those that go to one sum lie side by side: j, j + 8, j + 16, j + 24 for
 * j = 0 .. 7. Activations are stored like that, weights are brought into it by two shuffles of
 * the packed bytes; then the two multiply-add instructions sum just what belongs together.
 */
#include <immintrin.h>
#include <string.h>

#include "tools/runner/blocks.h"
#include "tools/runner/dot_v3.h"

/* Prefetch distance in bytes for weights: rows are contiguous in memory. */
#define AHEAD 4096

static inline __m256i load32(const void *at)
{
	return _mm256_loadu_si256((const __m256i *)at);
}

/* 32 packed bytes in the order of the sums. */
static inline __m256i by_sums(const uint8_t *bytes)
{
	const __m256i fours = _mm256_permutevar8x32_epi32(
		load32(bytes), _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
	const __m256i turn = _mm256_broadcastsi128_si256(
		_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));

	return _mm256_shuffle_epi8(fours, turn);
}

static inline void ask_ahead(const void *block, size_t bytes)
{
	for (size_t at = 0; at < bytes; at += 64)
		_mm_prefetch((const char *)(uintptr_t)((uintptr_t)block + AHEAD + at), _MM_HINT_T0);
}

/* Adds scale * weights * activations to the eight sums; `scales` holds 16 bits for each pair. */
static inline __m256i add_unsigned(__m256i sums, __m256i weights, const int8_t *acts,
				   __m256i scales)
{
	const __m256i pairs = _mm256_maddubs_epi16(weights, load32(acts));

	return _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, scales));
}

static inline __m256i add_signed(__m256i sums, __m256i weights, const int8_t *acts, __m256i scales)
{
	const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(weights),
						   _mm256_sign_epi8(load32(acts), weights));

	return _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, scales));
}

/* One scale for the first, another for the last 16 of 32 elements. */
static inline __m256i two_scales(const int16_t *scales)
{
	int32_t both;

	memcpy(&both, scales, sizeof(both));
	return _mm256_set1_epi32(both);
}

static inline int32_t sum_of(__m256i x)
{
	__m128i sum = _mm_add_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));

	sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4e));
	return _mm_cvtsi128_si32(_mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xb1)));
}

/* The sum over 16 groups of a minimum by the activations' sum. */
static inline int32_t sum_mins(const int16_t *bsums, const int16_t *mins)
{
	return sum_of(_mm256_madd_epi16(load32(bsums), load32(mins)));
}

/* Eight scales, and eight minima, each for two groups of 16. */
static inline void unpack_scales(const uint8_t *packed, int16_t *ret_scales, int16_t *ret_mins)
{
	uint32_t a, b, c, words[4];
	uint8_t bytes[16];

	memcpy(&a, packed, 4);
	memcpy(&b, packed + 4, 4);
	memcpy(&c, packed + 8, 4);
	words[0] = a & 0x3f3f3f3f;
	words[1] = (c & 0x0f0f0f0f) | (a >> 6 & 0x03030303) << 4;
	words[2] = b & 0x3f3f3f3f;
	words[3] = (c >> 4 & 0x0f0f0f0f) | (b >> 6 & 0x03030303) << 4;
	memcpy(bytes, words, sizeof(bytes));
	for (int j = 0; j < 8; j++) {
		ret_scales[j] = bytes[j];
		ret_mins[2 * j] = bytes[8 + j];
		ret_mins[2 * j + 1] = bytes[8 + j];
	}
}

/* sums + scale * lanes, without fusing. */
static inline __m256 add_block(__m256 sums, float scale, __m256i lanes)
{
	return _mm256_add_ps(sums, _mm256_mul_ps(_mm256_set1_ps(scale), _mm256_cvtepi32_ps(lanes)));
}

static inline float add_sums(float f, __m256 sums)
{
	float lanes[8];

	_mm256_storeu_ps(lanes, sums);
	for (int l = 0; l < 8; l++)
		f += lanes[l];
	return f;
}

float yi_dot_v3_q2_k(const void *weights, const void *acts, size_t n)
{
	const struct yi_q2_k *x = weights;
	const struct yi_q8_k *y = acts;
	float f = 0;

	for (size_t i = 0; i < n / YI_SUPER; i++) {
		const float d = y[i].d * _cvtsh_ss(x[i].d), dmin = y[i].d * _cvtsh_ss(x[i].dmin);
		int16_t scales[16], mins[16];
		__m256i lanes = _mm256_setzero_si256();

		ask_ahead(&x[i], sizeof(x[i]));
		for (int j = 0; j < 16; j++) {
			scales[j] = x[i].scales[j] & 15;
			mins[j] = x[i].scales[j] >> 4;
		}
		for (int half = 0; half < 2; half++) {
			__m256i qs = by_sums(x[i].qs + 32 * half);

			for (int k = 0; k < 4; k++, qs = _mm256_srli_epi16(qs, 2))
				lanes = add_unsigned(lanes,
						     _mm256_and_si256(qs, _mm256_set1_epi8(3)),
						     y[i].qs + 128 * half + 32 * k,
						     two_scales(scales + 8 * half + 2 * k));
		}
		f += d * (float)sum_of(lanes) - dmin * (float)sum_mins(y[i].bsums, mins);
	}
	return f;
}

float yi_dot_v3_q3_k(const void *weights, const void *acts, size_t n)
{
	const struct yi_q3_k *x = weights;
	const struct yi_q8_k *y = acts;
	__m256 sums = _mm256_setzero_ps();

	for (size_t i = 0; i < n / YI_SUPER; i++) {
		__m256i high = by_sums(x[i].hmask), lanes = _mm256_setzero_si256();
		int16_t scales[16];

		ask_ahead(&x[i], sizeof(x[i]));
		for (int j = 0; j < 16; j++)
			scales[j] = (int16_t)yi_blocks_scale3(x[i].scales, j);
		for (int half = 0; half < 2; half++) {
			__m256i qs = by_sums(x[i].qs + 32 * half);

			for (int k = 0; k < 4; k++) {
				const __m256i bit = _mm256_and_si256(high, _mm256_set1_epi8(1));
				const __m256i low = _mm256_and_si256(qs, _mm256_set1_epi8(3));
				const __m256i q = _mm256_or_si256(low, _mm256_slli_epi16(bit, 2));

				lanes = add_signed(lanes, _mm256_sub_epi8(q, _mm256_set1_epi8(4)),
						   y[i].qs + 128 * half + 32 * k,
						   two_scales(scales + 8 * half + 2 * k));
				qs = _mm256_srli_epi16(qs, 2);
				high = _mm256_srli_epi16(high, 1);
			}
		}
		sums = add_block(sums, _cvtsh_ss(x[i].d) * y[i].d, lanes);
	}
	return add_sums(0, sums);
}

float yi_dot_v3_q4_k(const void *weights, const void *acts, size_t n)
{
	const struct yi_q4_k *x = weights;
	const struct yi_q8_k *y = acts;
	const __m256i low = _mm256_set1_epi8(15);
	__m256 sums = _mm256_setzero_ps();
	float f = 0;

	for (size_t i = 0; i < n / YI_SUPER; i++) {
		int16_t scales[8], mins[16];
		__m256i lanes = _mm256_setzero_si256();

		ask_ahead(&x[i], sizeof(x[i]));
		unpack_scales(x[i].scales, scales, mins);
		for (int j = 0; j < 4; j++) {
			const __m256i qs = by_sums(x[i].qs + 32 * j);
			const __m256i high = _mm256_and_si256(_mm256_srli_epi16(qs, 4), low);

			lanes = add_unsigned(lanes, _mm256_and_si256(qs, low), y[i].qs + 64 * j,
					     _mm256_set1_epi16(scales[2 * j]));
			lanes = add_unsigned(lanes, high, y[i].qs + 64 * j + 32,
					     _mm256_set1_epi16(scales[2 * j + 1]));
		}
		sums = add_block(sums, _cvtsh_ss(x[i].d) * y[i].d, lanes);
		f -= _cvtsh_ss(x[i].dmin) * y[i].d * (float)sum_mins(y[i].bsums, mins);
	}
	return add_sums(f, sums);
}

float yi_dot_v3_q5_k(const void *weights, const void *acts, size_t n)
{
	const struct yi_q5_k *x = weights;
	const struct yi_q8_k *y = acts;
	const __m256i low = _mm256_set1_epi8(15), bit = _mm256_set1_epi8(1);
	__m256 sums = _mm256_setzero_ps();
	float f = 0;

	for (size_t i = 0; i < n / YI_SUPER; i++) {
		int16_t scales[8], mins[16];
		__m256i lanes = _mm256_setzero_si256(), high = by_sums(x[i].qh);

		ask_ahead(&x[i], sizeof(x[i]));
		unpack_scales(x[i].scales, scales, mins);
		for (int j = 0; j < 4; j++) {
			const __m256i qs = by_sums(x[i].qs + 32 * j);

			for (int k = 0; k < 2; k++, high = _mm256_srli_epi16(high, 1)) {
				const __m256i fifth =
					_mm256_slli_epi16(_mm256_and_si256(high, bit), 4);
				const __m256i four =
					_mm256_and_si256(k ? _mm256_srli_epi16(qs, 4) : qs, low);

				lanes = add_unsigned(lanes, _mm256_or_si256(four, fifth),
						     y[i].qs + 64 * j + 32 * k,
						     _mm256_set1_epi16(scales[2 * j + k]));
			}
		}
		sums = add_block(sums, _cvtsh_ss(x[i].d) * y[i].d, lanes);
		f -= _cvtsh_ss(x[i].dmin) * y[i].d * (float)sum_mins(y[i].bsums, mins);
	}
	return add_sums(f, sums);
}

float yi_dot_v3_q6_k(const void *weights, const void *acts, size_t n)
{
	const struct yi_q6_k *x = weights;
	const struct yi_q8_k *y = acts;
	const __m256i low = _mm256_set1_epi8(15), two = _mm256_set1_epi8(3);
	__m256 sums = _mm256_setzero_ps();

	for (size_t i = 0; i < n / YI_SUPER; i++) {
		__m256i lanes = _mm256_setzero_si256();
		int16_t scales[16];

		ask_ahead(&x[i], sizeof(x[i]));
		for (int j = 0; j < 16; j++)
			scales[j] = x[i].scales[j];
		for (int half = 0; half < 2; half++) {
			__m256i high = by_sums(x[i].qh + 32 * half);
			const __m256i qs[2] = {by_sums(x[i].ql + 64 * half),
					       by_sums(x[i].ql + 64 * half + 32)};

			for (int k = 0; k < 4; k++, high = _mm256_srli_epi16(high, 2)) {
				const __m256i four = _mm256_and_si256(
					k < 2 ? qs[k & 1] : _mm256_srli_epi16(qs[k & 1], 4), low);
				const __m256i q = _mm256_or_si256(
					four, _mm256_slli_epi16(_mm256_and_si256(high, two), 4));

				lanes = add_signed(lanes, _mm256_sub_epi8(q, _mm256_set1_epi8(32)),
						   y[i].qs + 128 * half + 32 * k,
						   two_scales(scales + 8 * half + 2 * k));
			}
		}
		sums = add_block(sums, _cvtsh_ss(x[i].d) * y[i].d, lanes);
	}
	return add_sums(0, sums);
}
