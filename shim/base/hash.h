/* SPDX-License-Identifier: MIT */
/*
 * hash: hash functions of words and short strings for tables. Not cryptographic. Pure.
 */
#ifndef TM_BASE_HASH_H
#define TM_BASE_HASH_H

#include "shim/base/attrs.h"

/* 2^64 / golden ratio: consecutive keys land far apart (Knuth, TAOCP 3, 6.4). */
#define TM_HASH_GOLDEN UINT64_C(0x9e3779b97f4a7c15)

/* Full avalanche: every bit of the result depends on every bit of x (finaliser of splitmix64). */
TM_INLINE uint64_t tm_hash_u64(uint64_t x)
{
	x ^= x >> 30;
	x *= UINT64_C(0xbf58476d1ce4e5b9);
	x ^= x >> 27;
	x *= UINT64_C(0x94d049bb133111eb);
	x ^= x >> 31;
	return x;
}

/* Folds the next word into a running hash; order matters. */
TM_INLINE uint64_t tm_hash_add(uint64_t hash, uint64_t x)
{
	return tm_hash_u64(hash * TM_HASH_GOLDEN + x);
}

/*
 * Index into a table of 1 << bits slots, bits 1..63. Not a single multiplication, as that would
 * cluster equally spaced keys.
 */
TM_INLINE size_t tm_hash_slot(uint64_t key, unsigned int bits)
{
	return (size_t)(tm_hash_u64(key) >> (64 - bits));
}

TM_INLINE uint64_t tm_hash_bytes(const void *data, size_t bytes)
{
	const unsigned char *at = data;
	uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ bytes;

	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
	return tm_hash_u64(hash);
}

#endif
