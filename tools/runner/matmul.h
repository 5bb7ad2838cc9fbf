/* SPDX-License-Identifier: MIT */
/*
 * Products of weight matrices with a few activation rows, on all workers.
 */
#ifndef YI_MATMUL_H
#define YI_MATMUL_H

#include "tools/runner/dot.h"
#include "tools/runner/model.h"
#include "tools/runner/threads.h"

#define YI_MATMUL_MAX 3

/* One matrix and where row i of its results goes: rows[i], or else out + i * n_out. */
struct yi_matmul {
	const struct yi_tensor *tensor;
	float *out;
	float *const *rows;
};

/*
 * Multiplies `n` activation rows, which lie tensor->n_in floats apart, with up to YI_MATMUL_MAX
 * matrices.  0 or -ENOMEM.
 */
int yi_matmul_run(struct yi_workers *workers, const struct yi_kernels *kernels, const float *acts,
		  uint32_t n, const struct yi_matmul *products, uint32_t n_products);

#endif
