/* SPDX-License-Identifier: MIT */
/*
 * Layout of one block of every quantised type, as in files.  `d`, `m` and `dmin` are half floats.
 *
 * In blocks of 32, byte j of qs holds element j in its low and element j + 16 in its high nibble.
 * In blocks of 256 ("K"), sixteen or eight groups have scales of their own, relative to d.
 */
#ifndef YI_BLOCKS_H
#define YI_BLOCKS_H

#include <stdint.h>

#define YI_BLOCK 32
#define YI_SUPER 256

struct yi_q4_0 {
	uint16_t d;
	uint8_t qs[16];
};

struct yi_q4_1 {
	uint16_t d, m;
	uint8_t qs[16];
};

struct yi_q5_0 {
	uint16_t d;
	uint8_t qh[4]; /* bit j: fifth bit of element j */
	uint8_t qs[16];
};

struct yi_q5_1 {
	uint16_t d, m;
	uint8_t qh[4];
	uint8_t qs[16];
};

struct yi_q8_0 {
	uint16_t d;
	int8_t qs[32];
};

struct yi_q8_1 {
	uint16_t d, s; /* s: d times the sum of qs */
	int8_t qs[32];
};

struct yi_q2_k {
	uint8_t scales[16]; /* low nibble scale, high nibble minimum */
	uint8_t qs[64];
	uint16_t d, dmin;
};

struct yi_q3_k {
	uint8_t hmask[32];
	uint8_t qs[64];
	uint8_t scales[12];
	uint16_t d;
};

struct yi_q4_k {
	uint16_t d, dmin;
	uint8_t scales[12];
	uint8_t qs[128];
};

struct yi_q5_k {
	uint16_t d, dmin;
	uint8_t scales[12];
	uint8_t qh[32];
	uint8_t qs[128];
};

struct yi_q6_k {
	uint8_t ql[128];
	uint8_t qh[64];
	int8_t scales[16];
	uint16_t d;
};

struct yi_q8_k {
	float d;
	int8_t qs[256];
	int16_t bsums[16]; /* sums of 16 qs */
};

_Static_assert(sizeof(struct yi_q4_0) == 18, "as in files");
_Static_assert(sizeof(struct yi_q4_1) == 20, "as in files");
_Static_assert(sizeof(struct yi_q5_0) == 22, "as in files");
_Static_assert(sizeof(struct yi_q5_1) == 24, "as in files");
_Static_assert(sizeof(struct yi_q8_0) == 34, "as in files");
_Static_assert(sizeof(struct yi_q8_1) == 36, "as in files");
_Static_assert(sizeof(struct yi_q2_k) == 84, "as in files");
_Static_assert(sizeof(struct yi_q3_k) == 110, "as in files");
_Static_assert(sizeof(struct yi_q4_k) == 144, "as in files");
_Static_assert(sizeof(struct yi_q5_k) == 176, "as in files");
_Static_assert(sizeof(struct yi_q6_k) == 210, "as in files");
_Static_assert(sizeof(struct yi_q8_k) == 292, "no padding");

/* Scale and minimum of group j (0 .. 7) of a Q4_K or Q5_K block: 6 bits each, packed. */
static inline void yi_blocks_scale_min(const uint8_t *scales, int j, uint8_t *ret_scale,
				       uint8_t *ret_min)
{
	if (j < 4) {
		*ret_scale = scales[j] & 63;
		*ret_min = scales[j + 4] & 63;
	} else {
		*ret_scale = (uint8_t)((scales[j + 4] & 15) | (scales[j - 4] >> 6) << 4);
		*ret_min = (uint8_t)(scales[j + 4] >> 4 | (scales[j] >> 6) << 4);
	}
}

/* Scale of group j (0 .. 15) of a Q3_K block: 6 bits, signed by an offset of 32. */
static inline int yi_blocks_scale3(const uint8_t *scales, int j)
{
	const int low = j < 8 ? scales[j] & 15 : scales[j - 8] >> 4;

	return (low | (scales[8 + j % 4] >> 2 * (j / 4) & 3) << 4) - 32;
}

/* Element of a Q3_K block in half n, group k, place l: 2 bits and, unless set in hmask, -4. */
static inline int yi_blocks_q3(const struct yi_q3_k *block, int n, int k, int l)
{
	return (block->qs[32 * n + l] >> 2 * k & 3) - (block->hmask[l] >> (4 * n + k) & 1 ? 0 : 4);
}

/* Element of a Q6_K block in half n, group k, place l. */
static inline int yi_blocks_q6(const struct yi_q6_k *block, int n, int k, int l)
{
	const uint8_t byte = block->ql[64 * n + 32 * (k & 1) + l];
	const int low = k < 2 ? byte & 15 : byte >> 4;

	return (low | (block->qh[32 * n + l] >> 2 * k & 3) << 4) - 32;
}

/* Element j of a block of 32 with a fifth bit. */
static inline int yi_blocks_q5(const uint8_t *qs, const uint8_t *qh, int j)
{
	const int low = j < 16 ? qs[j] & 15 : qs[j - 16] >> 4;

	return low | (qh[j / 8] >> j % 8 & 1) << 4;
}

#endif
