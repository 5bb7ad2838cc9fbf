/* SPDX-License-Identifier: MIT */
#include "tools/runner/kv.h"

#include <errno.h>
#include <string.h>

#include "tools/runner/kv_buffers.h"
#include "tools/runner/mem.h"

/* Rows of a growing cache's first buffers. */
#define FIRST_ROWS 16

uint64_t yi_kv_bytes_per_token(const struct yi_hparams *hp, enum yi_type type)
{
	const struct yi_type_traits *traits = yi_type_find(type);

	return (uint64_t)2 * hp->n_layer * (hp->kv_dim / traits->block) * traits->block_bytes;
}

struct yi_kv *yi_kv_create(const struct yi_kv_config *config)
{
	struct yi_kv *kv = yi_mem_zeroed(YI_MEM_KV, sizeof(*kv));

	if (!kv)
		return NULL;
	kv->config = *config;
	kv->traits = yi_type_find(config->type);
	kv->row_bytes = config->model->hp.kv_dim / kv->traits->block * kv->traits->block_bytes;
	if (config->alloc == YI_KV_GROW)
		return kv;
	kv->own = yi_kv_buffers_take(config, config->max_tokens);
	if (!kv->own) {
		yi_kv_free(kv);
		return NULL;
	}
	return kv;
}

static void drop_parts(struct yi_kv *kv, uint32_t keep)
{
	while (kv->n_parts > keep)
		yi_kv_buffers_drop(kv->parts[--kv->n_parts].buffers);
}

void yi_kv_free(struct yi_kv *kv)
{
	if (!kv)
		return;
	drop_parts(kv, 0);
	yi_mem_free(YI_MEM_KV, kv->parts);
	yi_kv_buffers_drop(kv->own);
	yi_mem_free(YI_MEM_KV, kv);
}

uint32_t yi_kv_len(const struct yi_kv *kv)
{
	return kv->len;
}

enum yi_type yi_kv_type(const struct yi_kv *kv)
{
	return kv->config.type;
}

size_t yi_kv_row_bytes(const struct yi_kv *kv)
{
	return kv->row_bytes;
}

uint32_t yi_kv_first(const struct yi_kv *kv, uint32_t position)
{
	if (kv->config.alloc != YI_KV_RING || position < kv->config.max_tokens)
		return 0;
	return position - kv->config.max_tokens + 1;
}

uint32_t yi_kv_step(const struct yi_kv *kv)
{
	uint32_t left = kv->len < kv->config.max_tokens ? kv->config.max_tokens - kv->len : 0;

	return left == 0 && kv->config.alloc == YI_KV_RING && kv->len < UINT32_MAX ? 1 : left;
}

int yi_kv_reserve(struct yi_kv *kv, uint32_t tokens)
{
	uint32_t rows, most = kv->config.max_tokens - kv->own_start;

	if (kv->config.alloc == YI_KV_RING)
		return tokens > UINT32_MAX - kv->len ? -ENOSPC : 0;
	if (tokens > yi_kv_step(kv))
		return -ENOSPC;
	rows = kv->len + tokens - kv->own_start;
	if (kv->own && rows <= kv->own->rows)
		return 0;
	if (kv->config.alloc == YI_KV_FULL) {
		rows = most;
	} else {
		uint32_t more = kv->own ? kv->own->rows + kv->own->rows / 2 : FIRST_ROWS;

		rows = rows < more ? more : rows;
		rows = rows < most ? rows : most;
	}
	if (kv->own)
		return yi_kv_buffers_grow(kv->own, rows);
	kv->own = yi_kv_buffers_take(&kv->config, rows);
	return kv->own ? 0 : -ENOMEM;
}

void yi_kv_write(struct yi_kv *kv, uint32_t layer, uint32_t position, const float *keys,
		 const float *values)
{
	uint32_t n_layer = kv->config.model->hp.n_layer, n = kv->config.model->hp.kv_dim;
	size_t offset = yi_kv_own_row(kv, position) * kv->row_bytes;

	kv->traits->quant_vec(keys, kv->own->blocks[layer] + offset, n);
	kv->traits->quant_vec(values, kv->own->blocks[n_layer + layer] + offset, n);
}

void yi_kv_append(struct yi_kv *kv, uint32_t tokens)
{
	kv->len += tokens;
}

bool yi_kv_next(const struct yi_kv *kv, uint32_t layer, uint32_t *at, uint32_t end,
		struct yi_kv_rows *ret_rows)
{
	uint32_t n_layer = kv->config.model->hp.n_layer, row, count;
	const struct yi_kv_buffers *buffers = kv->own;

	if (*at >= end)
		return false;
	row = yi_kv_own_row(kv, *at);
	count = end - *at;
	if (*at < kv->own_start) {
		const struct yi_kv_part *part = kv->parts;

		while (*at >= part->start + part->tokens)
			part++;
		buffers = part->buffers;
		row = *at - part->start;
		if (count > part->tokens - row)
			count = part->tokens - row;
	} else if (kv->config.alloc == YI_KV_RING && count > kv->config.max_tokens - row) {
		count = kv->config.max_tokens - row;
	}
	ret_rows->keys = buffers->blocks[layer] + row * kv->row_bytes;
	ret_rows->values = buffers->blocks[n_layer + layer] + row * kv->row_bytes;
	ret_rows->position = *at;
	ret_rows->count = count;
	*at += count;
	return true;
}

static int add_part(struct yi_kv *kv, struct yi_kv_buffers *buffers, uint32_t start,
		    uint32_t tokens)
{
	struct yi_kv_part *parts =
		yi_mem_resize(YI_MEM_KV, kv->parts, (kv->n_parts + 1) * sizeof(*parts));

	if (!parts)
		return -ENOMEM;
	kv->parts = parts;
	atomic_fetch_add_explicit(&buffers->users, 1, memory_order_relaxed);
	parts[kv->n_parts++] = (struct yi_kv_part){buffers, start, tokens};
	return 0;
}

/* Turns the sequence's own rows into a part that can be shared. */
static int freeze(struct yi_kv *kv)
{
	if (!kv->own || kv->len == kv->own_start)
		return 0;
	if (add_part(kv, kv->own, kv->own_start, kv->len - kv->own_start))
		return -ENOMEM;
	yi_kv_buffers_drop(kv->own);
	kv->own = NULL;
	kv->own_start = kv->len;
	return 0;
}

/* Makes the new sequence share the parts of `kv` up to `tokens`. */
static int stand_on(struct yi_kv *ret, const struct yi_kv *kv, uint32_t tokens)
{
	int code = 0;

	for (uint32_t i = 0; code == 0 && i < kv->n_parts; i++) {
		const struct yi_kv_part *part = &kv->parts[i];
		uint32_t count = tokens - ret->len;

		if (count == 0)
			break;
		count = count < part->tokens ? count : part->tokens;
		code = add_part(ret, part->buffers, part->start, count);
		if (code == 0)
			ret->len = ret->own_start = part->start + count;
	}
	return code;
}

struct yi_kv *yi_kv_share(struct yi_kv *kv, uint32_t tokens)
{
	struct yi_kv_config config = kv->config;
	struct yi_kv *shared;

	errno = EINVAL;
	if (config.alloc == YI_KV_RING || tokens > kv->len)
		return NULL;
	if (tokens > kv->own_start && freeze(kv))
		return NULL;
	/* It gets buffers of its own when there is something to store. */
	config.alloc = YI_KV_GROW;
	shared = yi_kv_create(&config);
	if (!shared)
		return NULL;
	shared->config.alloc = kv->config.alloc;
	if (stand_on(shared, kv, tokens)) {
		yi_kv_free(shared);
		return NULL;
	}
	return shared;
}

struct yi_kv *yi_kv_copy(const struct yi_kv *kv)
{
	struct yi_kv_config config = kv->config;
	struct yi_kv *copy;
	uint32_t rows;

	config.alloc = YI_KV_GROW;
	copy = yi_kv_create(&config);
	if (!copy)
		return NULL;
	copy->config.alloc = kv->config.alloc;
	if (stand_on(copy, kv, kv->own_start))
		goto fail;
	if (!kv->own)
		return copy;
	rows = kv->config.alloc == YI_KV_GROW ? kv->len - kv->own_start : kv->own->rows;
	copy->own = yi_kv_buffers_take(&kv->config, rows ? rows : 1);
	if (!copy->own)
		goto fail;
	copy->len = kv->len;
	if (rows > kv->len - kv->own_start)
		rows = kv->len - kv->own_start;
	for (uint32_t i = 0; i < copy->own->n_blocks; i++)
		memcpy(copy->own->blocks[i], kv->own->blocks[i], rows * kv->row_bytes);
	return copy;
fail:
	yi_kv_free(copy);
	return NULL;
}

int yi_kv_cut(struct yi_kv *kv, uint32_t tokens)
{
	uint32_t keep = 0;

	if (tokens >= kv->len)
		return 0;
	/* What a ring held before it wrapped is overwritten, so it can't go back. */
	if (kv->config.alloc == YI_KV_RING && kv->len > kv->config.max_tokens)
		return -EINVAL;
	kv->len = tokens;
	if (tokens >= kv->own_start)
		return 0;
	while (keep < kv->n_parts && kv->parts[keep].start < tokens)
		keep++;
	drop_parts(kv, keep);
	if (keep)
		kv->parts[keep - 1].tokens = tokens - kv->parts[keep - 1].start;
	/* The own buffers, if any, are empty now and are used from the new end on. */
	kv->own_start = tokens;
	return 0;
}
