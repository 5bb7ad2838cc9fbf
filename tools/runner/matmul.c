/* SPDX-License-Identifier: MIT */
/* See matmul.h.  Each result is one dot product in one thread: splitting changes no bit. */
#include "tools/runner/matmul.h"

#include <errno.h>

#include "tools/runner/mem.h"

/* From this many activation rows on, quantising them is worth waking the workers. */
#define QUANT_PARALLEL 4

/* The activations in one of the types that the matrices need. */
struct packed {
	enum yi_type type;
	uint8_t *data;
	size_t row_bytes;
};

struct job {
	const struct yi_kernels *kernels;
	const float *acts;
	uint32_t n, n_in;
	const struct yi_matmul *products;
	uint32_t n_products;
	struct packed packed[YI_MATMUL_MAX];
	uint32_t n_packed;
	uint32_t of_product[YI_MATMUL_MAX]; /* packed form that each product uses */
};

static void quantise(void *arg, uint32_t number, uint32_t count)
{
	const struct job *job = arg;

	for (uint32_t p = 0; p < job->n_packed; p++) {
		const struct packed *packed = &job->packed[p];

		for (uint32_t i = number; i < job->n; i += count)
			job->kernels->quant[packed->type](job->acts + (size_t)i * job->n_in,
							  packed->data + i * packed->row_bytes,
							  job->n_in);
	}
}

/* Rows [from, to) of one matrix with every activation row. */
static void multiply_rows(const struct job *job, uint32_t product, uint32_t from, uint32_t to)
{
	const struct yi_matmul *matmul = &job->products[product];
	const struct yi_tensor *tensor = matmul->tensor;
	const struct packed *packed = &job->packed[job->of_product[product]];
	yi_dot_fn *const dot = job->kernels->dot[tensor->type];
	yi_dot_rows_fn *const dot_rows = job->kernels->dot_rows[tensor->type];

	for (uint32_t row = from; row < to;) {
		const uint8_t *weights = tensor->data + row * tensor->row_bytes;
		const uint32_t step = dot_rows && to - row >= YI_DOT_ROWS ? YI_DOT_ROWS : 1;

		for (uint32_t i = 0; i < job->n; i++) {
			const uint8_t *acts = packed->data + i * packed->row_bytes;
			float *out = matmul->rows ? matmul->rows[i]
						  : matmul->out + (size_t)i * tensor->n_out;

			if (step == 1)
				out[row] = dot(weights, acts, job->n_in);
			else
				dot_rows(weights, tensor->row_bytes, acts, job->n_in, out + row);
		}
		row += step;
	}
}

static void multiply(void *arg, uint32_t number, uint32_t count)
{
	const struct job *job = arg;

	for (uint32_t p = 0; p < job->n_products; p++) {
		/* Whole groups, so that the grouping of rows does not depend on the split. */
		const uint64_t rows = job->products[p].tensor->n_out;
		const uint64_t groups = (rows + YI_DOT_ROWS - 1) / YI_DOT_ROWS;
		const uint64_t from = groups * number / count * YI_DOT_ROWS;
		const uint64_t to = groups * (number + 1) / count * YI_DOT_ROWS;

		multiply_rows(job, p, (uint32_t)from, (uint32_t)(to < rows ? to : rows));
	}
}

/* Finds or creates the packed form that a product uses. */
static int pack(struct job *job, uint32_t product)
{
	const enum yi_type type = yi_type_find(job->products[product].tensor->type)->vec;
	const struct yi_type_traits *traits = yi_type_find(type);
	uint32_t block_bytes = traits->block_bytes;
	struct packed *packed;

	for (uint32_t p = 0; p < job->n_packed; p++) {
		if (job->packed[p].type == type) {
			job->of_product[product] = p;
			return 0;
		}
	}
	packed = &job->packed[job->n_packed];
	packed->type = type;
	if (job->kernels->packed_bytes[type])
		block_bytes = job->kernels->packed_bytes[type];
	packed->row_bytes = (size_t)job->n_in / traits->block * block_bytes;
	packed->data = yi_mem_array(YI_MEM_ACTIVATIONS, job->n, packed->row_bytes);
	job->of_product[product] = job->n_packed++;
	return packed->data ? 0 : -ENOMEM;
}

int yi_matmul_run(struct yi_workers *workers, const struct yi_kernels *kernels, const float *acts,
		  uint32_t n, const struct yi_matmul *products, uint32_t n_products)
{
	struct job job = {
		.kernels = kernels,
		.acts = acts,
		.n = n,
		.n_in = products[0].tensor->n_in,
		.products = products,
		.n_products = n_products,
	};
	int error = 0;

	for (uint32_t p = 0; p < n_products && !error; p++)
		error = pack(&job, p);
	if (!error) {
		if (n < QUANT_PARALLEL)
			quantise(&job, 0, 1);
		else
			yi_workers_run(workers, quantise, &job);
		yi_workers_run(workers, multiply, &job);
	}
	for (uint32_t p = 0; p < job.n_packed; p++)
		yi_mem_free(YI_MEM_ACTIVATIONS, job.packed[p].data);
	return error;
}
