/* SPDX-License-Identifier: MIT */
/*
 * Half and brain floats as bits, converted as hardware does (round to nearest even).
 */
#ifndef YI_HALF_H
#define YI_HALF_H

#include <stdint.h>
#include <string.h>

static inline float yi_half_from_bits(uint32_t bits)
{
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static inline uint32_t yi_half_bits_of(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static inline float yi_half_to_float(uint16_t half)
{
	const uint32_t sign = (uint32_t)(half & 0x8000) << 16;
	const uint32_t rest = half & 0x7fff;

	if (rest >= 0x7c00) /* infinity, NaN */
		return yi_half_from_bits(sign | 0x7f800000 | (rest & 0x3ff) << 13);
	if (rest >= 0x400)
		return yi_half_from_bits(sign | ((rest << 13) + ((127 - 15) << 23)));
	/* Subnormal: the fraction counts steps of 2^-24. */
	return yi_half_from_bits(sign | yi_half_bits_of((float)rest * 0x1p-24f));
}

static inline uint16_t yi_half_of(float value)
{
	const uint32_t bits = yi_half_bits_of(value);
	const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
	const uint32_t rest = bits & 0x7fffffff;

	if (rest > 0x7f800000)
		return sign | 0x7e00;
	if (rest >= 0x477ff000) /* rounds to 65536 or more */
		return sign | 0x7c00;
	if (rest < 0x38800000) {
		/* Subnormal result: adding 0.5 leaves the rounded steps of 2^-24 in the low bits. */
		const float sum = yi_half_from_bits(rest) + 0.5f;

		return (uint16_t)(sign | (yi_half_bits_of(sum) - 0x3f000000));
	}
	return (uint16_t)(sign | ((rest + 0xfff + (rest >> 13 & 1) - 0x38000000) >> 13));
}

static inline float yi_brain_to_float(uint16_t brain)
{
	return yi_half_from_bits((uint32_t)brain << 16);
}

static inline uint16_t yi_brain_of(float value)
{
	const uint32_t bits = yi_half_bits_of(value);

	if ((bits & 0x7fffffff) > 0x7f800000)
		return (uint16_t)(bits >> 16 | 64); /* NaN stays NaN */
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#endif
