/* SPDX-License-Identifier: MIT */
/*
 * Chooses the kernels; see dot.h. Three sets: the reference; the same bits with x86-64-v3 where
 * such a kernel exists; the fastest.
 */
#include "tools/runner/dot.h"

#include <pthread.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <stdbool.h>

#include "tools/runner/dot_v3.h"

static struct yi_kernels exact, fastest;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* __builtin_cpu_supports does not know this name in every compiler. */
static bool has_f16c(void)
{
	unsigned eax, ebx, ecx = 0, edx;

	return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C);
}

static void fill(void)
{
	exact = yi_dot_reference;
	fastest = yi_dot_reference;
	__builtin_cpu_init();
	if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !has_f16c())
		return;
	exact.name = "x86-64-v3, exact";
	exact.dot_rows[YI_Q4_0] = yi_dot_v3_q4_0;
	exact.dot_rows[YI_Q4_1] = yi_dot_v3_q4_1;
	exact.dot_rows[YI_Q5_0] = yi_dot_v3_q5_0;
	exact.dot_rows[YI_Q5_1] = yi_dot_v3_q5_1;
	exact.dot_rows[YI_Q8_0] = yi_dot_v3_q8_0;
	exact.dot[YI_Q4_0] = yi_dot_v3_one_q4_0;
	exact.dot[YI_Q4_1] = yi_dot_v3_one_q4_1;
	exact.dot[YI_Q5_0] = yi_dot_v3_one_q5_0;
	exact.dot[YI_Q5_1] = yi_dot_v3_one_q5_1;
	exact.dot[YI_Q8_0] = yi_dot_v3_one_q8_0;
	exact.dot[YI_Q2_K] = yi_dot_v3_q2_k;
	exact.dot[YI_Q3_K] = yi_dot_v3_q3_k;
	exact.dot[YI_Q4_K] = yi_dot_v3_q4_k;
	exact.dot[YI_Q5_K] = yi_dot_v3_q5_k;
	exact.dot[YI_Q6_K] = yi_dot_v3_q6_k;
	exact.scores_f16 = yi_dot_v3_scores_f16;
	exact.mix_f16 = yi_dot_v3_mix_f16;
	exact.packed_bytes[YI_Q8_0] = YI_DOT_V3_BLOCK;
	exact.packed_bytes[YI_Q8_1] = YI_DOT_V3_BLOCK;
	exact.quant[YI_F16] = yi_dot_v3_quant_f16;
	exact.quant[YI_Q8_0] = yi_dot_v3_quant_q8_0;
	exact.quant[YI_Q8_1] = yi_dot_v3_quant_q8_1;
	exact.quant[YI_Q8_K] = yi_dot_v3_quant_q8_k;
	fastest = exact;
	fastest.name = "x86-64-v3";
	fastest.dot[YI_F32] = yi_dot_v3_f32;
	fastest.dot[YI_F16] = yi_dot_v3_f16;
	fastest.dot[YI_BF16] = yi_dot_v3_bf16;
}

const struct yi_kernels *yi_dot_fastest(void)
{
	pthread_once(&once, fill);
	return &fastest;
}

const struct yi_kernels *yi_dot_exact(void)
{
	pthread_once(&once, fill);
	return &exact;
}

#else

const struct yi_kernels *yi_dot_fastest(void)
{
	return &yi_dot_reference;
}

const struct yi_kernels *yi_dot_exact(void)
{
	return &yi_dot_reference;
}

#endif
