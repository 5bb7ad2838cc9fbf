/* SPDX-License-Identifier: MIT */
/*
 * See forward.h. A batch is evaluated in chunks, each chunk layer by layer; every intermediate
 * result has its own malloc and is freed as soon as the next step has used it.
 */
#include "tools/runner/forward.h"

#include <errno.h>
#include <string.h>

#include "tools/runner/attention.h"
#include "tools/runner/dot.h"
#include "tools/runner/matmul.h"
#include "tools/runner/mem.h"
#include "tools/runner/ops.h"

#define CHUNK 64

struct yi_forward {
	const struct yi_model *model;
	struct yi_workers *workers;
	const struct yi_kernels *kernels;
	struct yi_tiers *tiers; /* NULL: no samples are taken */
};

/* A chunk during its evaluation. */
struct chunk {
	const struct yi_forward *forward;
	const struct yi_item *items;
	const uint32_t *positions;
	uint32_t n;
	float *x;      /* n rows of n_embd: the residual stream */
	float *angles; /* n rows of head_dim */
	/* current layer */
	uint32_t layer;
	const float *weights; /* of the current norm */
	float *normed, *q, *k, *v, *mixed;
	float *scratch; /* one piece per worker */
	size_t scratch_floats;
};

struct yi_forward *yi_forward_create(const struct yi_model *model, struct yi_workers *workers,
				     enum yi_exactness exactness)
{
	struct yi_forward *forward = yi_mem_zeroed(YI_MEM_OTHER, sizeof(*forward));

	if (!forward)
		return NULL;
	forward->model = model;
	forward->workers = workers;
	forward->kernels = exactness == YI_EXACT ? yi_dot_exact() : yi_dot_fastest();
	return forward;
}

void yi_forward_free(struct yi_forward *forward)
{
	yi_mem_free(YI_MEM_OTHER, forward);
}

void yi_forward_watch(struct yi_forward *forward, struct yi_tiers *tiers)
{
	forward->tiers = tiers;
}

static float *activations(uint32_t rows, uint32_t width)
{
	return yi_mem_array(YI_MEM_ACTIVATIONS, rows, (size_t)width * sizeof(float));
}

static void drop(float **activations)
{
	yi_mem_free(YI_MEM_ACTIVATIONS, *activations);
	*activations = NULL;
}

/* Runs a step that treats each row separately; a single row is not worth waking the workers. */
static void for_rows(struct chunk *chunk, yi_work_fn *fn)
{
	if (chunk->n == 1)
		fn(chunk, 0, 1);
	else
		yi_workers_run(chunk->forward->workers, fn, chunk);
}

static void embed_rows(void *arg, uint32_t number, uint32_t count)
{
	const struct chunk *chunk = arg;
	const struct yi_model *model = chunk->forward->model;
	const struct yi_hparams *hp = &model->hp;
	const struct yi_rope rope = {hp->head_dim, hp->rope_base, model->rope_freqs};

	for (uint32_t i = number; i < chunk->n; i += count) {
		yi_type_find(model->embd.type)
			->dequant(model->embd.data +
					  (size_t)chunk->items[i].token * model->embd.row_bytes,
				  chunk->x + (size_t)i * hp->n_embd, hp->n_embd);
		yi_ops_rope_angles(&rope, (float)chunk->positions[i],
				   chunk->angles + (size_t)i * hp->head_dim);
	}
}

static void norm_rows(void *arg, uint32_t number, uint32_t count)
{
	const struct chunk *chunk = arg;
	const struct yi_hparams *hp = &chunk->forward->model->hp;

	for (uint32_t i = number; i < chunk->n; i += count)
		yi_ops_rms_norm(chunk->x + (size_t)i * hp->n_embd, chunk->weights, hp->rms_eps,
				chunk->normed + (size_t)i * hp->n_embd, hp->n_embd);
}

static int norm(struct chunk *chunk, const struct yi_tensor *weights)
{
	chunk->normed = activations(chunk->n, chunk->forward->model->hp.n_embd);
	if (!chunk->normed)
		return -ENOMEM;
	chunk->weights = (const float *)(const void *)weights->data;
	for_rows(chunk, norm_rows);
	return 0;
}

static void store_rows(void *arg, uint32_t number, uint32_t count)
{
	const struct chunk *chunk = arg;
	const struct yi_hparams *hp = &chunk->forward->model->hp;

	for (uint32_t i = number; i < chunk->n; i += count) {
		const float *angles = chunk->angles + (size_t)i * hp->head_dim;
		float *k = chunk->k + (size_t)i * hp->kv_dim;

		yi_ops_rotate(chunk->q + (size_t)i * hp->n_head * hp->head_dim, hp->n_head,
			      hp->head_dim, angles);
		yi_ops_rotate(k, hp->n_head_kv, hp->head_dim, angles);
		yi_kv_write(chunk->items[i].kv, chunk->layer, chunk->positions[i], k,
			    chunk->v + (size_t)i * hp->kv_dim);
	}
}

static void attend(void *arg, uint32_t number, uint32_t count)
{
	const struct chunk *chunk = arg;
	const struct yi_hparams *hp = &chunk->forward->model->hp;
	const uint64_t tasks = (uint64_t)chunk->n * hp->n_head;

	for (uint64_t task = number; task < tasks; task += count) {
		const uint32_t i = (uint32_t)(task / hp->n_head);
		const uint32_t head = (uint32_t)(task % hp->n_head);
		const size_t at = (size_t)task * hp->head_dim;
		const struct yi_attention attention = {
			.hp = hp,
			.kv = chunk->items[i].kv,
			.layer = chunk->layer,
			.position = chunk->positions[i],
			.kv_head = head / (hp->n_head / hp->n_head_kv),
			.q = chunk->q + at,
			.out = chunk->mixed + at,
		};

		yi_attention_run(&attention, chunk->forward->kernels,
				 chunk->scratch + number * chunk->scratch_floats);
	}
}

static int multiply(const struct chunk *chunk, const float *acts, const struct yi_matmul *products,
		    uint32_t n_products)
{
	return yi_matmul_run(chunk->forward->workers, chunk->forward->kernels, acts, chunk->n,
			     products, n_products);
}

static int project(struct chunk *chunk, const struct yi_layer *layer)
{
	const struct yi_hparams *hp = &chunk->forward->model->hp;
	int error = norm(chunk, &layer->attn_norm);

	if (error)
		return error;
	chunk->q = activations(chunk->n, hp->n_head * hp->head_dim);
	chunk->k = activations(chunk->n, hp->kv_dim);
	chunk->v = activations(chunk->n, hp->kv_dim);
	if (!chunk->q || !chunk->k || !chunk->v)
		return -ENOMEM;
	error = multiply(chunk, chunk->normed,
			 (const struct yi_matmul[]){{&layer->q, chunk->q, NULL},
						    {&layer->k, chunk->k, NULL},
						    {&layer->v, chunk->v, NULL}},
			 3);
	drop(&chunk->normed);
	if (error)
		return error;
	for_rows(chunk, store_rows);
	drop(&chunk->k);
	drop(&chunk->v);
	return 0;
}

/* After the last layer's attention only tokens whose logits are wanted continue. */
static void keep_wanted(struct chunk *chunk, struct yi_item *items, uint32_t *positions)
{
	const struct yi_hparams *hp = &chunk->forward->model->hp;
	const size_t q_dim = (size_t)hp->n_head * hp->head_dim;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < chunk->n; i++) {
		if (!chunk->items[i].logits)
			continue;
		items[kept] = chunk->items[i];
		positions[kept] = chunk->positions[i];
		memmove(chunk->x + (size_t)kept * hp->n_embd, chunk->x + (size_t)i * hp->n_embd,
			hp->n_embd * sizeof(float));
		memmove(chunk->q + kept * q_dim, chunk->q + i * q_dim, q_dim * sizeof(float));
		kept++;
	}
	chunk->items = items;
	chunk->positions = positions;
	chunk->n = kept;
}

static int attention(struct chunk *chunk, const struct yi_layer *layer)
{
	const struct yi_hparams *hp = &chunk->forward->model->hp;
	const uint32_t workers = yi_workers_count(chunk->forward->workers);
	uint32_t visible = 1;
	float *out;
	int error;

	for (uint32_t i = 0; i < chunk->n; i++) {
		const uint32_t at = chunk->positions[i];
		const uint32_t sees = at + 1 - yi_kv_first(chunk->items[i].kv, at);

		visible = visible > sees ? visible : sees;
	}
	chunk->scratch_floats = yi_attention_scratch(hp, visible);
	chunk->scratch =
		yi_mem_array(YI_MEM_ACTIVATIONS, workers, chunk->scratch_floats * sizeof(float));
	chunk->mixed = activations(chunk->n, hp->n_head * hp->head_dim);
	out = activations(chunk->n, hp->n_embd);
	if (!chunk->scratch || !chunk->mixed || !out) {
		drop(&out);
		return -ENOMEM;
	}
	yi_workers_run(chunk->forward->workers, attend, chunk);
	drop(&chunk->scratch);
	drop(&chunk->q);
	error = multiply(chunk, chunk->mixed,
			 &(const struct yi_matmul){&layer->attn_output, out, NULL}, 1);
	drop(&chunk->mixed);
	if (!error)
		yi_ops_add(chunk->x, out, (size_t)chunk->n * hp->n_embd);
	drop(&out);
	return error;
}

/* Gate and up projections, stored in chunk->q and chunk->k. */
static void gate_rows(void *arg, uint32_t number, uint32_t count)
{
	const struct chunk *chunk = arg;
	const size_t n = chunk->forward->model->hp.n_ff;

	for (uint32_t i = number; i < chunk->n; i += count)
		yi_ops_silu_mul(chunk->q + i * n, chunk->k + i * n, n);
}

static int feed_forward(struct chunk *chunk, const struct yi_layer *layer)
{
	const struct yi_hparams *hp = &chunk->forward->model->hp;
	float *out;
	int error = norm(chunk, &layer->ffn_norm);

	if (error)
		return error;
	chunk->q = activations(chunk->n, hp->n_ff);
	chunk->k = activations(chunk->n, hp->n_ff);
	if (!chunk->q || !chunk->k)
		return -ENOMEM;
	error = multiply(chunk, chunk->normed,
			 (const struct yi_matmul[]){{&layer->gate, chunk->q, NULL},
						    {&layer->up, chunk->k, NULL}},
			 2);
	/* At this point most activations are live. */
	if (chunk->forward->tiers && chunk->forward->tiers->due)
		yi_tiers_sample(chunk->forward->tiers);
	drop(&chunk->normed);
	if (error)
		return error;
	for_rows(chunk, gate_rows);
	drop(&chunk->k);
	out = activations(chunk->n, hp->n_embd);
	if (!out)
		return -ENOMEM;
	error = multiply(chunk, chunk->q, &(const struct yi_matmul){&layer->down, out, NULL}, 1);
	drop(&chunk->q);
	if (!error)
		yi_ops_add(chunk->x, out, (size_t)chunk->n * hp->n_embd);
	drop(&out);
	return error;
}

static int logits(struct chunk *chunk)
{
	const struct yi_model *model = chunk->forward->model;
	float *rows[CHUNK];
	int error = norm(chunk, &model->output_norm);

	for (uint32_t i = 0; i < chunk->n; i++)
		rows[i] = chunk->items[i].logits;
	if (!error)
		error = multiply(chunk, chunk->normed,
				 &(const struct yi_matmul){&model->output, NULL, rows}, 1);
	for (uint32_t i = 0; i < chunk->n && !error; i++)
		if (!yi_ops_finite(rows[i], model->hp.n_vocab))
			error = -EDOM;
	return error;
}

static int run_layers(struct chunk *chunk, struct yi_item *items, uint32_t *positions)
{
	const struct yi_model *model = chunk->forward->model;
	const struct yi_hparams *hp = &model->hp;

	for (uint32_t l = 0; l < hp->n_layer; l++) {
		int error;

		chunk->layer = l;
		error = project(chunk, &model->layers[l]);
		if (error)
			return error;
		if (l + 1 == hp->n_layer) {
			if (!yi_ops_finite(chunk->x, (size_t)chunk->n * hp->n_embd))
				return -EDOM;
			keep_wanted(chunk, items, positions);
			if (chunk->n == 0)
				return 0;
		}
		error = attention(chunk, &model->layers[l]);
		if (!error)
			error = feed_forward(chunk, &model->layers[l]);
		if (error)
			return error;
	}
	return logits(chunk);
}

static int run_chunk(const struct yi_forward *forward, const struct yi_item *items,
		     const uint32_t *positions, uint32_t n)
{
	const struct yi_hparams *hp = &forward->model->hp;
	struct yi_item wanted[CHUNK];
	uint32_t wanted_positions[CHUNK];
	struct chunk chunk = {
		.forward = forward,
		.items = items,
		.positions = positions,
		.n = n,
	};
	int error = -ENOMEM;

	chunk.x = activations(n, hp->n_embd);
	chunk.angles = activations(n, hp->head_dim);
	if (chunk.x && chunk.angles) {
		for_rows(&chunk, embed_rows);
		error = run_layers(&chunk, wanted, wanted_positions);
	}
	drop(&chunk.normed);
	drop(&chunk.q);
	drop(&chunk.k);
	drop(&chunk.v);
	drop(&chunk.mixed);
	drop(&chunk.scratch);
	drop(&chunk.angles);
	drop(&chunk.x);
	return error;
}

/* Position of item i: after the previous item of the same cache in this batch, if any. */
static uint32_t position_of(const struct yi_item *items, const uint32_t *positions, uint32_t i)
{
	for (uint32_t j = i; j-- > 0;)
		if (items[j].kv == items[i].kv)
			return positions[j] + 1;
	return yi_kv_len(items[i].kv);
}

/* Reserves room for all items; from the last one, so that each cache grows only once. */
static int reserve_all(const struct yi_item *items, uint32_t n_items, uint32_t *positions)
{
	for (uint32_t i = 0; i < n_items; i++)
		positions[i] = position_of(items, positions, i);
	for (uint32_t i = n_items; i-- > 0;) {
		struct yi_kv *kv = items[i].kv;
		const int error = yi_kv_reserve(kv, positions[i] + 1 - yi_kv_len(kv));

		if (error)
			return error;
	}
	return 0;
}

/*
 * Number of items from `from` on that form a chunk. A ring that has wrapped takes one at a time,
 * because each token overwrites a row that the previous one still sees.
 */
static uint32_t chunk_size(const struct yi_item *items, const uint32_t *positions, uint32_t from,
			   uint32_t n_items)
{
	uint32_t n = 0;

	for (; n < CHUNK && from + n < n_items; n++) {
		const struct yi_kv *kv = items[from + n].kv;

		if (yi_kv_first(kv, positions[from + n]) == 0)
			continue;
		for (uint32_t i = from; i < from + n; i++)
			if (items[i].kv == kv)
				return n;
	}
	return n;
}

int yi_forward_eval(struct yi_forward *forward, const struct yi_item *items, uint32_t n_items)
{
	uint32_t *positions = yi_mem_array(YI_MEM_ACTIVATIONS, n_items, sizeof(*positions));
	int error;

	if (!positions)
		return -ENOMEM;
	error = reserve_all(items, n_items, positions);
	for (uint32_t done = 0, n; done < n_items && !error; done += n) {
		n = chunk_size(items, positions, done, n_items);
		error = run_chunk(forward, items + done, positions + done, n);
	}
	for (uint32_t i = 0; i < n_items && !error; i++)
		yi_kv_append(items[i].kv, 1);
	yi_mem_free(YI_MEM_ACTIVATIONS, positions);
	return error;
}

uint64_t yi_forward_bytes(const struct yi_hparams *hp, uint32_t n_items, uint32_t n_logits,
			  uint32_t n_visible)
{
	const uint64_t n = n_items < CHUNK ? n_items : CHUNK;
	const uint64_t q_dim = (uint64_t)hp->n_head * hp->head_dim, embd = hp->n_embd;
	/* Floats per token at the widest point of each step; packed rows take a third of floats. */
	const uint64_t project = embd + embd / 3 + q_dim + 2 * (uint64_t)hp->kv_dim;
	const uint64_t attend = 2 * q_dim + embd + yi_attention_scratch(hp, n_visible) / n;
	const uint64_t feed = embd + embd / 3 + 2 * (uint64_t)hp->n_ff;
	uint64_t widest = project > attend ? project : attend;

	widest = widest > feed ? widest : feed;
	return n * (embd + hp->head_dim + widest) * sizeof(float) +
	       (uint64_t)n_logits * hp->n_vocab * sizeof(float);
}
