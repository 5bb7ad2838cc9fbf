/* SPDX-License-Identifier: MIT */
/*
 * Random blocks of every type; see make_model.h.
 *
 * Quantising random floats would take minutes for a real shape, so quants are drawn themselves:
 * random bytes, and scales such that the values they stand for have the wanted deviation and a
 * mean of nearly zero.
 */
#include <math.h>
#include <string.h>

#include "tools/runner/blocks.h"
#include "tools/runner/half.h"
#include "tools/runner/make_model.h"

static void random_bytes(uint8_t *bytes, size_t n, struct yi_make_random *random)
{
	for (; n >= 8; n -= 8, bytes += 8) {
		const uint64_t word = yi_make_next(random);

		memcpy(bytes, &word, 8);
	}
	if (n) {
		const uint64_t word = yi_make_next(random);

		memcpy(bytes, &word, n);
	}
}

/* From 0.75 to 1.25: blocks differ in scale as real ones do. */
static float vary(struct yi_make_random *random)
{
	return 0.75f + (float)(yi_make_next(random) >> 40) * (0.5f / 16777216.0f);
}

/* Uniform, deviation 1. */
static float uniform(struct yi_make_random *random)
{
	return ((float)(yi_make_next(random) >> 40) * (1.0f / 8388608.0f) - 1.0f) * 1.7320508f;
}

static void put_half(uint8_t *at, float value)
{
	const uint16_t half = yi_half_of(value);

	memcpy(at, &half, sizeof(half));
}

static void make_floats(enum yi_type type, uint8_t *blocks, size_t bytes, float sigma,
			struct yi_make_random *random)
{
	const uint32_t size = type == YI_F32 ? 4 : 2;

	for (size_t at = 0; at < bytes; at += size) {
		const float value = uniform(random) * sigma;
		const uint16_t brain = yi_brain_of(value);

		if (type == YI_F32)
			memcpy(blocks + at, &value, sizeof(value));
		else if (type == YI_F16)
			put_half(blocks + at, value);
		else
			memcpy(blocks + at, &brain, sizeof(brain));
	}
}

/* Scale and, for types that have one, minimum of a block of 32, given the deviation of quants. */
static void make_simple(enum yi_type type, uint8_t *block, float sigma,
			struct yi_make_random *random)
{
	const float v = sigma * vary(random);

	switch (type) {
	case YI_Q4_0: put_half(block, v / 4.63f); break;
	case YI_Q4_1:
		put_half(block, v / 4.61f);
		put_half(block + 2, v / 4.61f * -7.5f);
		break;
	case YI_Q5_0: put_half(block, v / 9.24f); break;
	case YI_Q5_1:
		put_half(block, v / 9.23f);
		put_half(block + 2, v / 9.23f * -15.5f);
		break;
	default: /* Q8_0 */ put_half(block, v / 73.9f); break;
	}
}

/* Packs eight 6-bit numbers that serve as scale and as minimum alike. */
static void pack_scales(uint8_t *scales, uint64_t bits)
{
	uint8_t s[8];

	for (int j = 0; j < 8; j++)
		s[j] = (uint8_t)(32 + (bits >> 5 * j & 31));
	for (int j = 0; j < 4; j++) {
		scales[j] = (uint8_t)(s[j] | (s[j + 4] >> 4) << 6);
		scales[j + 4] = (uint8_t)(s[j] | (s[j + 4] >> 4) << 6);
		scales[j + 8] = (uint8_t)((s[j + 4] & 15) | s[j + 4] << 4);
	}
}

static void make_super(enum yi_type type, uint8_t *block, float sigma,
		       struct yi_make_random *random)
{
	const float v = sigma * vary(random);

	switch (type) {
	case YI_Q2_K:
		for (int j = 0; j < 16; j++)
			block[j] = (uint8_t)((8 | (block[j] & 7)) * 17);
		put_half(block + 80, v / 12.9f);
		put_half(block + 82, v / 12.9f * 1.5f);
		break;
	case YI_Q3_K: put_half(block + 108, v / 42.4f); break;
	case YI_Q4_K:
		put_half(block, v / 221.0f);
		put_half(block + 2, v / 221.0f * 7.5f);
		pack_scales(block + 4, yi_make_next(random));
		break;
	case YI_Q5_K:
		put_half(block, v / 443.0f);
		put_half(block + 2, v / 443.0f * 15.5f);
		pack_scales(block + 4, yi_make_next(random));
		break;
	default: /* Q6_K */
		for (int j = 0; j < 16; j++)
			block[192 + j] = (uint8_t)((block[192 + j] & 127) - 64);
		put_half(block + 208, v / 683.0f);
		break;
	}
}

void yi_make_weights(enum yi_type type, uint8_t *blocks, size_t bytes, float sigma,
		     struct yi_make_random *random)
{
	const struct yi_type_traits *traits = yi_type_find(type);

	if (traits->block == 1) {
		make_floats(type, blocks, bytes, sigma, random);
		return;
	}
	random_bytes(blocks, bytes, random);
	for (size_t at = 0; at < bytes; at += traits->block_bytes) {
		if (traits->block == YI_BLOCK)
			make_simple(type, blocks + at, sigma, random);
		else
			make_super(type, blocks + at, sigma, random);
	}
}
