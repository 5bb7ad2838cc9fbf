/* SPDX-License-Identifier: MIT */
/*
 * bits: arithmetic on words, alignments and bit sets. Pure; any thread, any signal handler.
 * Alignments are powers of two. Functions that return a bit position require x != 0.
 */
#ifndef TM_BASE_BITS_H
#define TM_BASE_BITS_H

#include "shim/base/attrs.h"

TM_INLINE bool tm_bits_is_pow2(uint64_t x)
{
	return x != 0 && (x & (x - 1)) == 0;
}

TM_INLINE size_t tm_bits_align_down(size_t x, size_t align)
{
	return x & ~(align - 1);
}

/* Wraps to 0 for x > SIZE_MAX - align + 1: for untrusted x use tm_bits_align_up_checked. */
TM_INLINE size_t tm_bits_align_up(size_t x, size_t align)
{
	return (x + (align - 1)) & ~(align - 1);
}

TM_INLINE bool tm_bits_align_up_checked(size_t x, size_t align, size_t *ret)
{
	size_t sum;

	if (__builtin_add_overflow(x, align - 1, &sum))
		return false;
	*ret = sum & ~(align - 1);
	return true;
}

TM_INLINE bool tm_bits_is_aligned(uintptr_t x, size_t align)
{
	return (x & (align - 1)) == 0;
}

/* Position of the highest set bit. */
TM_INLINE unsigned int tm_bits_log2(uint64_t x)
{
	return 63u - (unsigned int)__builtin_clzll(x);
}

/* Smallest n with 1 << n >= x; 0 for x <= 1. */
TM_INLINE unsigned int tm_bits_log2_up(uint64_t x)
{
	return x <= 1 ? 0 : 64u - (unsigned int)__builtin_clzll(x - 1);
}

/* Position of the lowest set bit. */
TM_INLINE unsigned int tm_bits_lowest(uint64_t x)
{
	return (unsigned int)__builtin_ctzll(x);
}

TM_INLINE size_t tm_bits_min(size_t a, size_t b)
{
	return a < b ? a : b;
}

TM_INLINE size_t tm_bits_max(size_t a, size_t b)
{
	return a > b ? a : b;
}

TM_INLINE size_t tm_bits_clamp(size_t x, size_t low, size_t high)
{
	return x < low ? low : x > high ? high : x;
}

TM_INLINE size_t tm_bits_div_up(size_t x, size_t by)
{
	return x / by + (x % by != 0);
}

/* x with the bits below "bit" cleared; 0 when bit >= 64. */
TM_INLINE uint64_t tm_bits_from(uint64_t x, unsigned int bit)
{
	return bit >= 64 ? 0 : x & (UINT64_MAX << bit);
}

#endif
