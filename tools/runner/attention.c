/* SPDX-License-Identifier: MIT */
/*
 * See attention.h. Sums are computed in doubles, in the order of elements and of positions, as in
 * the reference's dot products over whole rows.
 */
#include "tools/runner/attention.h"

#include <math.h>
#include <string.h>

#include "tools/runner/blocks.h"
#include "tools/runner/half.h"
#include "tools/runner/ops.h"
#include "tools/runner/quant_vec.h"

struct scratch {
	float *scores; /* one per visible position, count rounded up to 4 */
	double *sum;   /* head_dim */
	float *row;    /* head_dim: the query, later one value row */
	uint8_t *q8;   /* the query in Q8_0, fits in head_dim * 2 bytes */
};

size_t yi_attention_scratch(const struct yi_hparams *hp, uint32_t visible)
{
	return ((size_t)visible + 3) / 4 * 4 + (size_t)hp->head_dim * 4;
}

static struct scratch carve(float *memory, uint32_t visible, uint32_t head_dim)
{
	struct scratch scratch;

	scratch.scores = memory;
	scratch.sum = (double *)(void *)(memory + ((size_t)visible + 3) / 4 * 4);
	scratch.row = (float *)(void *)(scratch.sum + head_dim);
	scratch.q8 = (uint8_t *)(scratch.row + head_dim);
	return scratch;
}

/* Converts one row of a cache to floats: f16 is widened exactly, q8_0 scaled. */
static const float *widen(enum yi_type type, const uint8_t *row, float *room, uint32_t n)
{
	if (type == YI_F32)
		return (const float *)(const void *)row;
	yi_type_find(type)->dequant(row, room, n);
	return room;
}

static double dot_double(const float *a, const float *b, uint32_t n)
{
	double sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += (double)(a[i] * b[i]);
	return sum;
}

/* Scores of a run of rows, by the generic loop. */
static void score_run(const struct yi_attention *attention, const struct yi_kv_rows *run,
		      size_t head_offset, const struct scratch *scratch, float *scores)
{
	const enum yi_type type = yi_kv_type(attention->kv);
	const size_t row_bytes = yi_kv_row_bytes(attention->kv);
	const uint32_t n = attention->hp->head_dim;
	const float scale = 1.0f / sqrtf((float)n);
	float *room = (float *)(void *)scratch->sum; /* not used yet */

	for (uint32_t t = 0; t < run->count; t++) {
		const uint8_t *key = run->keys + t * row_bytes + head_offset;
		float dot;

		if (type == YI_Q8_0)
			dot = yi_dot_reference.dot[YI_Q8_0](key, scratch->q8, n);
		else
			dot = (float)dot_double(widen(type, key, room, n), scratch->row, n);
		scores[t] = dot * scale;
	}
}

/* Adds the weighted values of a run of rows, by the generic loop. */
static void mix_run(const struct yi_attention *attention, const struct yi_kv_rows *run,
		    size_t head_offset, const struct scratch *scratch, const float *scores)
{
	const enum yi_type type = yi_kv_type(attention->kv);
	const size_t row_bytes = yi_kv_row_bytes(attention->kv);
	const uint32_t n = attention->hp->head_dim;

	for (uint32_t t = 0; t < run->count; t++) {
		const uint8_t *at = run->values + t * row_bytes + head_offset;
		const float *value = widen(type, at, scratch->row, n);

		for (uint32_t i = 0; i < n; i++)
			scratch->sum[i] += (double)(value[i] * scores[t]);
	}
}

static void round_query(enum yi_type type, const float *q, const struct scratch *scratch,
			uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		scratch->row[i] = type == YI_F16 ? yi_half_to_float(yi_half_of(q[i])) : q[i];
	if (type == YI_Q8_0)
		yi_quant_vec_q8_0(q, scratch->q8, n);
}

void yi_attention_run(const struct yi_attention *attention, const struct yi_kernels *kernels,
		      float *memory)
{
	const struct yi_kv *kv = attention->kv;
	const enum yi_type type = yi_kv_type(kv);
	const struct yi_type_traits *traits = yi_type_find(type);
	const uint32_t n = attention->hp->head_dim, end = attention->position + 1;
	const uint32_t first = yi_kv_first(kv, attention->position);
	const size_t head_offset =
		(size_t)attention->kv_head * n / traits->block * traits->block_bytes;
	const size_t row_bytes = yi_kv_row_bytes(kv);
	const bool fast = type == YI_F16 && kernels->scores_f16;
	const struct scratch scratch = carve(memory, end - first, n);
	struct yi_kv_rows run;

	round_query(type, attention->q, &scratch, n);
	for (uint32_t at = first; yi_kv_next(kv, attention->layer, &at, end, &run);) {
		float *scores = scratch.scores + (run.position - first);

		if (fast)
			kernels->scores_f16(scratch.row, run.keys + head_offset, row_bytes,
					    run.count, n, 1.0f / sqrtf((float)n), scores);
		else
			score_run(attention, &run, head_offset, &scratch, scores);
	}
	yi_ops_soft_max(scratch.scores, end - first);
	/* A product of half floats rounds both factors. */
	for (uint32_t i = 0; type == YI_F16 && i < end - first; i++)
		scratch.scores[i] = yi_half_to_float(yi_half_of(scratch.scores[i]));
	memset(scratch.sum, 0, n * sizeof(*scratch.sum));
	for (uint32_t at = first; yi_kv_next(kv, attention->layer, &at, end, &run);) {
		const float *scores = scratch.scores + (run.position - first);

		if (fast)
			kernels->mix_f16(scores, run.values + head_offset, row_bytes, run.count, n,
					 scratch.sum);
		else
			mix_run(attention, &run, head_offset, &scratch, scores);
	}
	for (uint32_t i = 0; i < n; i++)
		attention->out[i] = (float)scratch.sum[i];
}
