/* SPDX-License-Identifier: MIT */
/*
 * Block formats of weights and activations.
 *
 * A weight row is a run of blocks of one type; an activation row is first quantised to the type
 * that its weights' dot product wants (`vec`).  The reference functions compute exactly what
 * llama.cpp's plain x86-64 back end computes, in the same order of operations.
 */
#ifndef YI_QUANT_H
#define YI_QUANT_H

#include <stddef.h>
#include <stdint.h>

/* Numbers are those of the file format. */
enum yi_type {
	YI_F32 = 0,
	YI_F16 = 1,
	YI_Q4_0 = 2,
	YI_Q4_1 = 3,
	YI_Q5_0 = 6,
	YI_Q5_1 = 7,
	YI_Q8_0 = 8,
	YI_Q8_1 = 9, /* activations only */
	YI_Q2_K = 10,
	YI_Q3_K = 11,
	YI_Q4_K = 12,
	YI_Q5_K = 13,
	YI_Q6_K = 14,
	YI_Q8_K = 15, /* activations only */
	YI_BF16 = 30,
	YI_TYPE_LIMIT = 31
};

struct yi_type_traits {
	const char *name; /* NULL: not a type the runner knows */
	uint32_t block;   /* elements */
	uint32_t block_bytes;
	enum yi_type vec; /* type of the activations in a dot product */
	int weights;      /* nonzero: may be stored in a model file */
	void (*dequant)(const void *row, float *ret, size_t n);
	void (*quant_vec)(const float *row, void *ret, size_t n); /* as activation type */
};

/* NULL for numbers that are no type of this runner. */
const struct yi_type_traits *yi_type_find(uint32_t type);
/* By name, ignoring case ("q8_0"); NULL if unknown. */
const struct yi_type_traits *yi_type_by_name(const char *name, enum yi_type *ret_type);

#endif
