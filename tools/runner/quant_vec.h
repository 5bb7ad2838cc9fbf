/* SPDX-License-Identifier: MIT */
/* Quantisation of activation rows, the exact form; n is a multiple of the block. */
#ifndef YI_QUANT_VEC_H
#define YI_QUANT_VEC_H

#include <stddef.h>

void yi_quant_vec_f32(const float *row, void *ret, size_t n);
void yi_quant_vec_f16(const float *row, void *ret, size_t n);
void yi_quant_vec_bf16(const float *row, void *ret, size_t n);
void yi_quant_vec_q8_0(const float *row, void *ret, size_t n);
void yi_quant_vec_q8_1(const float *row, void *ret, size_t n);
void yi_quant_vec_q8_k(const float *row, void *ret, size_t n);

#endif
