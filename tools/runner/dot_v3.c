/* SPDX-License-Identifier: MIT */
/*
 * Exact dot products of four rows of 32-element blocks; see dot_v3.h.
 *
 * For each block the four integer sums end up side by side, so that the scaling and adding that
 * the reference does for one row is done for four in the same order.
 */
#include "tools/runner/dot_v3.h"

#include <immintrin.h>
#include <string.h>

#include "tools/runner/blocks.h"

/* Addresses in the four rows; blocks are at the same offset in each. */
struct four {
	const uint8_t *at[YI_DOT_ROWS];
	uintptr_t ahead; /* next address to prefetch, two times four rows ahead */
};

static inline struct four four_rows(const void *weights, size_t row_bytes)
{
	const uint8_t *at = weights;

	return (struct four){{at, at + row_bytes, at + 2 * row_bytes, at + 3 * row_bytes},
			     (uintptr_t)at + 2 * YI_DOT_ROWS * row_bytes};
}

/*
 * Advances to the next block. Rows are too short for the hardware to predict where they continue,
 * so as many bytes are prefetched further on as this block used; past the last row that has no
 * effect.
 */
static inline void step(struct four *rows, size_t bytes)
{
	for (size_t at = 0; at + 64 <= YI_DOT_ROWS * bytes; at += 64)
		_mm_prefetch((const char *)(rows->ahead + at), _MM_HINT_T0);
	rows->ahead += YI_DOT_ROWS * bytes;
	for (int r = 0; r < YI_DOT_ROWS; r++)
		rows->at[r] += bytes;
}

static inline uint16_t half_at(const uint8_t *at)
{
	uint16_t half;

	memcpy(&half, at, sizeof(half));
	return half;
}

/* The half float at that offset in each row's block. */
static inline __m128 halves(const struct four *rows, size_t offset)
{
	const uint64_t packed = (uint64_t)half_at(rows->at[0] + offset) |
				(uint64_t)half_at(rows->at[1] + offset) << 16 |
				(uint64_t)half_at(rows->at[2] + offset) << 32 |
				(uint64_t)half_at(rows->at[3] + offset) << 48;

	return _mm_cvtph_ps(_mm_cvtsi64_si128((long long)packed));
}

static inline __m256i load32(const void *at)
{
	return _mm256_loadu_si256((const __m256i *)at);
}

/* Elements 0 .. 15 of a block of two rows, side by side, and elements 16 .. 31. */
struct halves2 {
	__m256i low, high;
};

static inline struct halves2 two_nibbles(const uint8_t *a, const uint8_t *b)
{
	const __m128i packed_a = _mm_loadu_si128((const __m128i *)(const void *)a);
	const __m128i packed_b = _mm_loadu_si128((const __m128i *)(const void *)b);
	const __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(packed_a), packed_b, 1);
	const __m256i mask = _mm256_set1_epi8(15);

	return (struct halves2){_mm256_and_si256(both, mask),
				_mm256_and_si256(_mm256_srli_epi16(both, 4), mask)};
}

/* Adds 16 to every byte whose bit is set in the rows' 32 bits. */
static inline struct halves2 add_fifth_bits(struct halves2 q, const uint8_t *a, const uint8_t *b)
{
	const __m256i low = _mm256_setr_epi64x(0, 0x0101010101010101, 0, 0x0101010101010101);
	const __m256i high = _mm256_add_epi8(low, _mm256_set1_epi8(2));
	const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201);
	const __m256i sixteen = _mm256_set1_epi8(16);
	int32_t bits_a, bits_b;
	__m256i bits, x, y;

	memcpy(&bits_a, a, sizeof(bits_a));
	memcpy(&bits_b, b, sizeof(bits_b));
	bits = _mm256_blend_epi32(_mm256_set1_epi32(bits_a), _mm256_set1_epi32(bits_b), 0xf0);
	x = _mm256_and_si256(_mm256_shuffle_epi8(bits, low), bit);
	y = _mm256_and_si256(_mm256_shuffle_epi8(bits, high), bit);
	x = _mm256_and_si256(_mm256_cmpeq_epi8(x, bit), sixteen);
	y = _mm256_and_si256(_mm256_cmpeq_epi8(y, bit), sixteen);
	return (struct halves2){_mm256_or_si256(q.low, x), _mm256_or_si256(q.high, y)};
}

/* Sums of products of unsigned weights (at most 128) and activations in eight lanes. */
static inline __m256i products(__m256i weights, __m256i acts)
{
	return _mm256_madd_epi16(_mm256_maddubs_epi16(weights, acts), _mm256_set1_epi16(1));
}

/* Adds neighbours of a and b: a0+a1, b0+b1, a2+a3, b2+b3 and so on. */
static inline __m256i add_pairs(__m256i a, __m256i b)
{
	const __m256i swapped = _mm256_shuffle_epi32(_mm256_blend_epi32(b, a, 0xaa), 0xb1);

	return _mm256_add_epi32(_mm256_blend_epi32(a, b, 0xaa), swapped);
}

/* The sum of each of four vectors.  Blends, because shuffles have but one port. */
static inline __m128i sums4(__m256i a, __m256i b, __m256i c, __m256i d)
{
	const __m256i ab = add_pairs(a, b), cd = add_pairs(c, d);
	const __m256i swapped = _mm256_shuffle_epi32(_mm256_blend_epi32(cd, ab, 0xcc), 0x4e);
	const __m256i sums = _mm256_add_epi32(_mm256_blend_epi32(ab, cd, 0xcc), swapped);

	return _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
}

/* Activations of a block, each half twice. */
static inline struct halves2 two_acts(const int8_t *qs)
{
	return (struct halves2){
		_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)qs)),
		_mm256_broadcastsi128_si256(
			_mm_loadu_si128((const __m128i *)(const void *)(qs + 16)))};
}

/* Sums of products for two rows, one in each half; weights up to 31 don't overflow. */
static inline __m256i two_products(struct halves2 weights, struct halves2 acts)
{
	const __m256i pairs = _mm256_add_epi16(_mm256_maddubs_epi16(weights.low, acts.low),
					       _mm256_maddubs_epi16(weights.high, acts.high));

	return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

/* The sums of the halves of both: rows a and b in one, c and d in the other. */
static inline __m128i sums2(__m256i ab, __m256i cd)
{
	__m256i sums = add_pairs(ab, cd);

	sums = _mm256_add_epi32(sums, _mm256_shuffle_epi32(sums, 0x4e));
	return _mm_unpacklo_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
}

/* Offset to subtract from a sum: the sum of the activations times a power of two. */
static inline __m128i times(const int32_t *sum, int shift)
{
	float bits;

	memcpy(&bits, sum, sizeof(bits));
	return _mm_slli_epi32(_mm_castps_si128(_mm_set1_ps(bits)), shift);
}

/* Activations as quantised below, see yi_dot_v3_quant_q8_0. */
struct acts {
	const int8_t *qs;
	const float *d;
	const int32_t *sums;
	const float *s;
};

static inline struct acts acts_of(const void *packed, size_t n)
{
	const int8_t *qs = packed;
	const float *d = (const float *)(const void *)(qs + n), *s = d + n / YI_BLOCK;

	return (struct acts){qs, d, (const int32_t *)(const void *)s, s};
}

void yi_dot_v3_q8_0(const void *weights, size_t row_bytes, const void *acts, size_t n, float *ret)
{
	struct four rows = four_rows(weights, row_bytes);
	const struct acts y = acts_of(acts, n);
	__m128 f = _mm_setzero_ps();

	for (size_t i = 0; i < n / YI_BLOCK; i++, step(&rows, sizeof(struct yi_q8_0))) {
		const __m256i a = load32(y.qs + YI_BLOCK * i);
		__m256i p[YI_DOT_ROWS];
		__m128i sums;

		for (int r = 0; r < YI_DOT_ROWS; r++) {
			const __m256i x = load32(rows.at[r] + 2);

			p[r] = products(_mm256_abs_epi8(x), _mm256_sign_epi8(a, x));
		}
		sums = sums4(p[0], p[1], p[2], p[3]);
		f = _mm_add_ps(f,
			       _mm_mul_ps(_mm_cvtepi32_ps(sums),
					  _mm_mul_ps(halves(&rows, 0), _mm_broadcast_ss(y.d + i))));
	}
	_mm_storeu_ps(ret, f);
}

void yi_dot_v3_q4_0(const void *weights, size_t row_bytes, const void *acts, size_t n, float *ret)
{
	struct four rows = four_rows(weights, row_bytes);
	const struct acts y = acts_of(acts, n);
	__m128 f = _mm_setzero_ps();

	for (size_t i = 0; i < n / YI_BLOCK; i++, step(&rows, sizeof(struct yi_q4_0))) {
		const struct halves2 a = two_acts(y.qs + YI_BLOCK * i);
		const __m256i p = two_products(two_nibbles(rows.at[0] + 2, rows.at[1] + 2), a);
		const __m256i q = two_products(two_nibbles(rows.at[2] + 2, rows.at[3] + 2), a);
		/* Weights are nibbles less 8. */
		const __m128i sums = _mm_sub_epi32(sums2(p, q), times(y.sums + i, 3));

		f = _mm_add_ps(f, _mm_mul_ps(_mm_mul_ps(_mm_cvtepi32_ps(sums), halves(&rows, 0)),
					     _mm_broadcast_ss(y.d + i)));
	}
	_mm_storeu_ps(ret, f);
}

void yi_dot_v3_q5_0(const void *weights, size_t row_bytes, const void *acts, size_t n, float *ret)
{
	struct four rows = four_rows(weights, row_bytes);
	const struct acts y = acts_of(acts, n);
	__m128 f = _mm_setzero_ps();

	for (size_t i = 0; i < n / YI_BLOCK; i++, step(&rows, sizeof(struct yi_q5_0))) {
		const struct halves2 a = two_acts(y.qs + YI_BLOCK * i);
		const struct halves2 w = two_nibbles(rows.at[0] + 6, rows.at[1] + 6);
		const struct halves2 v = two_nibbles(rows.at[2] + 6, rows.at[3] + 6);
		const __m256i p =
			two_products(add_fifth_bits(w, rows.at[0] + 2, rows.at[1] + 2), a);
		const __m256i q =
			two_products(add_fifth_bits(v, rows.at[2] + 2, rows.at[3] + 2), a);
		/* Weights are five bits less 16. */
		const __m128i sums = _mm_sub_epi32(sums2(p, q), times(y.sums + i, 4));

		f = _mm_add_ps(f,
			       _mm_mul_ps(_mm_mul_ps(halves(&rows, 0), _mm_broadcast_ss(y.d + i)),
					  _mm_cvtepi32_ps(sums)));
	}
	_mm_storeu_ps(ret, f);
}

/* Types with a minimum: scale of x and y times the sum, plus minimum times y's scaled sum. */
static inline __m128 add_min(__m128 f, const struct four *rows, const struct acts *y, size_t i,
			     __m128i sums)
{
	const __m128 scaled = _mm_mul_ps(_mm_mul_ps(halves(rows, 0), _mm_broadcast_ss(y->d + i)),
					 _mm_cvtepi32_ps(sums));

	return _mm_add_ps(
		f, _mm_add_ps(scaled, _mm_mul_ps(halves(rows, 2), _mm_broadcast_ss(y->s + i))));
}

void yi_dot_v3_q4_1(const void *weights, size_t row_bytes, const void *acts, size_t n, float *ret)
{
	struct four rows = four_rows(weights, row_bytes);
	const struct acts y = acts_of(acts, n);
	__m128 f = _mm_setzero_ps();

	for (size_t i = 0; i < n / YI_BLOCK; i++, step(&rows, sizeof(struct yi_q4_1))) {
		const struct halves2 a = two_acts(y.qs + YI_BLOCK * i);
		const __m256i p = two_products(two_nibbles(rows.at[0] + 4, rows.at[1] + 4), a);
		const __m256i q = two_products(two_nibbles(rows.at[2] + 4, rows.at[3] + 4), a);

		f = add_min(f, &rows, &y, i, sums2(p, q));
	}
	_mm_storeu_ps(ret, f);
}

void yi_dot_v3_q5_1(const void *weights, size_t row_bytes, const void *acts, size_t n, float *ret)
{
	struct four rows = four_rows(weights, row_bytes);
	const struct acts y = acts_of(acts, n);
	__m128 f = _mm_setzero_ps();

	for (size_t i = 0; i < n / YI_BLOCK; i++, step(&rows, sizeof(struct yi_q5_1))) {
		const struct halves2 a = two_acts(y.qs + YI_BLOCK * i);
		const struct halves2 w = two_nibbles(rows.at[0] + 8, rows.at[1] + 8);
		const struct halves2 v = two_nibbles(rows.at[2] + 8, rows.at[3] + 8);
		const __m256i p =
			two_products(add_fifth_bits(w, rows.at[0] + 4, rows.at[1] + 4), a);
		const __m256i q =
			two_products(add_fifth_bits(v, rows.at[2] + 4, rows.at[3] + 4), a);

		f = add_min(f, &rows, &y, i, sums2(p, q));
	}
	_mm_storeu_ps(ret, f);
}

/* One row: computed as four equal ones. */
static inline float one_row(yi_dot_rows_fn *rows, const void *weights, const void *acts, size_t n)
{
	float ret[YI_DOT_ROWS];

	rows(weights, 0, acts, n, ret);
	return ret[0];
}

float yi_dot_v3_one_q8_0(const void *weights, const void *acts, size_t n)
{
	return one_row(yi_dot_v3_q8_0, weights, acts, n);
}

float yi_dot_v3_one_q4_0(const void *weights, const void *acts, size_t n)
{
	return one_row(yi_dot_v3_q4_0, weights, acts, n);
}

float yi_dot_v3_one_q5_0(const void *weights, const void *acts, size_t n)
{
	return one_row(yi_dot_v3_q5_0, weights, acts, n);
}

float yi_dot_v3_one_q4_1(const void *weights, const void *acts, size_t n)
{
	return one_row(yi_dot_v3_q4_1, weights, acts, n);
}

float yi_dot_v3_one_q5_1(const void *weights, const void *acts, size_t n)
{
	return one_row(yi_dot_v3_q5_1, weights, acts, n);
}
