/* SPDX-License-Identifier: MIT */
/* See model.h. */
#include "tools/runner/model.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "tools/runner/mem.h"
#include "tools/runner/model_check.h"

#define LAYER_LIMIT 512

struct loader {
	struct yi_model *model;
	const struct yi_gguf *file;
	struct yi_error *error;
	uint32_t used; /* tensors that were assigned */
};

/* A required integer from `min` to `max`. */
static int get_number(struct loader *loader, const char *key, uint32_t min, uint32_t max,
		      uint32_t *ret)
{
	int error = yi_gguf_get_u32(loader->file, key, ret, loader->error);

	if (error == -ENOENT)
		return yi_gguf_refuse(loader->file, key, loader->error, "is missing");
	if (!error && (*ret < min || *ret > max))
		return yi_gguf_refuse_value(loader->file, yi_gguf_find(loader->file, key),
					    loader->error, "is not from %u to %u", min, max);
	return error;
}

/* An integer that may be absent and else must be `want`. */
static int want_number(struct loader *loader, const char *key, uint32_t want, const char *why)
{
	uint32_t number = want;
	int error = yi_gguf_get_u32(loader->file, key, &number, loader->error);

	if (error && error != -ENOENT)
		return error;
	if (number != want)
		return yi_gguf_refuse_value(loader->file, yi_gguf_find(loader->file, key),
					    loader->error, "is not %u, %s", want, why);
	return 0;
}

static int read_architecture(struct loader *loader)
{
	struct yi_text name = {"", 0};
	int error = yi_gguf_get_text(loader->file, "general.architecture", &name, loader->error);

	if (error == -ENOENT)
		return yi_gguf_refuse(loader->file, "general.architecture", loader->error,
				      "is missing");
	if (!error && (name.len != 5 || memcmp(name.bytes, "llama", 5)))
		return yi_gguf_refuse_value(loader->file,
					    yi_gguf_find(loader->file, "general.architecture"),
					    loader->error, "is not 'llama'");
	return error;
}

static int read_heads(struct loader *loader)
{
	struct yi_hparams *hp = &loader->model->hp;
	const char *key = "llama.attention.head_count";
	int error = get_number(loader, key, 1, hp->n_embd, &hp->n_head);

	if (error)
		return error;
	if (yi_gguf_find(loader->file, "llama.attention.key_length")) {
		error = get_number(loader, "llama.attention.key_length", 2, hp->n_embd,
				   &hp->head_dim);
		if (error)
			return error;
	} else if (hp->n_embd % hp->n_head) {
		return yi_gguf_refuse_value(loader->file, yi_gguf_find(loader->file, key),
					    loader->error, "does not divide the embedding's %u",
					    hp->n_embd);
	} else {
		hp->head_dim = hp->n_embd / hp->n_head;
	}
	error = want_number(loader, "llama.attention.value_length", hp->head_dim,
			    "the length of keys");
	if (error)
		return error;
	hp->n_head_kv = hp->n_head;
	key = "llama.attention.head_count_kv";
	if (yi_gguf_find(loader->file, key)) {
		error = get_number(loader, key, 1, hp->n_head, &hp->n_head_kv);
		if (error)
			return error;
	}
	if (hp->n_head % hp->n_head_kv)
		return yi_gguf_refuse_value(loader->file, yi_gguf_find(loader->file, key),
					    loader->error, "does not divide the %u heads",
					    hp->n_head);
	if (hp->head_dim % 2)
		return yi_gguf_refuse(loader->file, "llama.rope.dimension_count", loader->error,
				      "head dimension %u is odd", hp->head_dim);
	hp->kv_dim = hp->n_head_kv * hp->head_dim;
	return 0;
}

/* A real number that must be finite and, with `above`, positive. */
static int check_real(struct loader *loader, const char *key, float value, float above)
{
	if (isfinite(value) && value > above)
		return 0;
	return yi_gguf_refuse_value(loader->file, yi_gguf_find(loader->file, key), loader->error,
				    "is not a number above %g", (double)above);
}

static int read_rope(struct loader *loader)
{
	struct yi_hparams *hp = &loader->model->hp;
	struct yi_text kind = {"none", 4};
	float factor = 1;
	int error;

	error = want_number(loader, "llama.rope.dimension_count", hp->head_dim,
			    "the dimension of a head");
	if (error)
		return error;
	hp->rope_base = 10000;
	error = yi_gguf_get_f32(loader->file, "llama.rope.freq_base", &hp->rope_base,
				loader->error);
	if (!error)
		error = check_real(loader, "llama.rope.freq_base", hp->rope_base, 0);
	if (error && error != -ENOENT)
		return error;
	error = yi_gguf_get_text(loader->file, "llama.rope.scaling.type", &kind, loader->error);
	if (error && error != -ENOENT)
		return error;
	if (kind.len != 4 || memcmp(kind.bytes, "none", 4))
		return yi_gguf_refuse_value(loader->file,
					    yi_gguf_find(loader->file, "llama.rope.scaling.type"),
					    loader->error, "is not 'none'");
	error = yi_gguf_get_f32(loader->file, "llama.rope.scaling.factor", &factor, loader->error);
	if (error && error != -ENOENT)
		return error;
	if (!(factor == 1.0f || factor == 0.0f))
		return yi_gguf_refuse_value(loader->file,
					    yi_gguf_find(loader->file, "llama.rope.scaling.factor"),
					    loader->error, "is not 1");
	return 0;
}

static int read_hparams(struct loader *loader)
{
	struct yi_hparams *hp = &loader->model->hp;
	const char *eps = "llama.attention.layer_norm_rms_epsilon";
	int error = read_architecture(loader);

	if (!error)
		error = yi_model_check_vocab(loader->file, &hp->n_vocab, loader->error);
	if (!error)
		error = get_number(loader, "llama.context_length", 1, INT32_MAX, &hp->n_ctx_train);
	if (!error)
		error = get_number(loader, "llama.embedding_length", 1, 1 << 20, &hp->n_embd);
	if (!error)
		error = get_number(loader, "llama.block_count", 1, LAYER_LIMIT, &hp->n_layer);
	if (!error)
		error = get_number(loader, "llama.feed_forward_length", 1, 1 << 24, &hp->n_ff);
	if (!error)
		error = want_number(loader, "llama.expert_count", 0, "experts are not supported");
	if (!error)
		error = read_heads(loader);
	if (!error)
		error = read_rope(loader);
	if (error)
		return error;
	error = yi_gguf_get_f32(loader->file, eps, &hp->rms_eps, loader->error);
	if (error == -ENOENT)
		return yi_gguf_refuse(loader->file, eps, loader->error, "is missing");
	return error ? error : check_real(loader, eps, hp->rms_eps, -0x1p-149f);
}

static int refuse_tensor(struct loader *loader, const struct yi_gguf_tensor *tensor,
			 const char *what, uint64_t n_in, uint64_t n_out)
{
	return yi_error_set(loader->error, YI_EXIT_REFUSED, -EINVAL,
			    "%s: %s: %s [%" PRIu64 ", %" PRIu64 ", %" PRIu64 ", %" PRIu64
			    "] %s [%" PRIu64 ", %" PRIu64 "] at offset %" PRIu64,
			    loader->file->path, tensor->name, yi_type_find(tensor->type)->name,
			    tensor->ne[0], tensor->ne[1], tensor->ne[2], tensor->ne[3], what, n_in,
			    n_out, tensor->info_offset);
}

/* Finds a tensor of n_out rows of n_in; n_out 0: a vector, which must be F32. */
static int find_tensor(struct loader *loader, const char *name, struct yi_tensor *ret,
		       uint32_t n_in, uint32_t n_out)
{
	const struct yi_gguf_tensor *tensor = yi_gguf_find_tensor(loader->file, name);
	const struct yi_type_traits *traits;

	if (!tensor)
		return yi_gguf_refuse(loader->file, name, loader->error, "tensor is missing");
	if (tensor->ne[0] != n_in || tensor->ne[1] != (n_out ? n_out : 1) || tensor->ne[2] != 1 ||
	    tensor->ne[3] != 1)
		return refuse_tensor(loader, tensor, "has a wrong shape, want", n_in,
				     n_out ? n_out : 1);
	if (n_out == 0 && tensor->type != YI_F32)
		return refuse_tensor(loader, tensor, "is not F32", n_in, 1);
	traits = yi_type_find(tensor->type);
	ret->type = tensor->type;
	ret->n_in = n_in;
	ret->n_out = n_out ? n_out : 1;
	ret->row_bytes = (size_t)n_in / traits->block * traits->block_bytes;
	/* The data's address is unknown until it is mapped or read: store its file offset. */
	ret->data = (const uint8_t *)(uintptr_t)tensor->offset;
	loader->model->parameters += (uint64_t)ret->n_in * ret->n_out;
	loader->model->weight_bytes += tensor->bytes;
	loader->used++;
	return 0;
}

static int find_layer(struct loader *loader, uint32_t number)
{
	const struct yi_hparams *hp = &loader->model->hp;
	struct yi_layer *layer = &loader->model->layers[number];
	const uint32_t q_dim = hp->n_head * hp->head_dim;
	const struct {
		const char *name;
		struct yi_tensor *tensor;
		uint32_t n_in, n_out;
	} parts[] = {
		{"attn_norm", &layer->attn_norm, hp->n_embd, 0},
		{"attn_q", &layer->q, hp->n_embd, q_dim},
		{"attn_k", &layer->k, hp->n_embd, hp->kv_dim},
		{"attn_v", &layer->v, hp->n_embd, hp->kv_dim},
		{"attn_output", &layer->attn_output, q_dim, hp->n_embd},
		{"ffn_norm", &layer->ffn_norm, hp->n_embd, 0},
		{"ffn_gate", &layer->gate, hp->n_embd, hp->n_ff},
		{"ffn_up", &layer->up, hp->n_embd, hp->n_ff},
		{"ffn_down", &layer->down, hp->n_ff, hp->n_embd},
	};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		char name[64];
		int error;

		snprintf(name, sizeof(name), "blk.%u.%s.weight", number, parts[i].name);
		error = find_tensor(loader, name, parts[i].tensor, parts[i].n_in, parts[i].n_out);
		if (error)
			return error;
	}
	return 0;
}

/*
 * Refuses a file with an unassigned tensor, and names it: running without it would give wrong
 * results.
 */
static int refuse_extra(struct loader *loader)
{
	const struct yi_model *model = loader->model;

	for (uint32_t i = 0; i < loader->file->n_tensors; i++) {
		const struct yi_gguf_tensor *tensor = &loader->file->tensors[i];
		const uint8_t *place = (const uint8_t *)(uintptr_t)tensor->offset;
		bool known = place == model->embd.data || place == model->output_norm.data ||
			     place == model->output.data ||
			     place == (const uint8_t *)model->rope_freqs;

		for (uint32_t l = 0; l < model->hp.n_layer && !known; l++) {
			const struct yi_layer *layer = &model->layers[l];

			known = place == layer->attn_norm.data || place == layer->q.data ||
				place == layer->k.data || place == layer->v.data ||
				place == layer->attn_output.data || place == layer->ffn_norm.data ||
				place == layer->gate.data || place == layer->up.data ||
				place == layer->down.data;
		}
		if (!known)
			return yi_error_set(loader->error, YI_EXIT_REFUSED, -EINVAL,
					    "%s: %s: tensor has no place in this model at offset "
					    "%" PRIu64,
					    loader->file->path, tensor->name, tensor->info_offset);
	}
	return 0;
}

static int find_tensors(struct loader *loader)
{
	struct yi_model *model = loader->model;
	const struct yi_hparams *hp = &model->hp;
	int error = find_tensor(loader, "token_embd.weight", &model->embd, hp->n_embd, hp->n_vocab);

	if (!error)
		error = find_tensor(loader, "output_norm.weight", &model->output_norm, hp->n_embd,
				    0);
	if (error)
		return error;
	model->output = model->embd;
	if (yi_gguf_find_tensor(loader->file, "output.weight"))
		error = find_tensor(loader, "output.weight", &model->output, hp->n_embd,
				    hp->n_vocab);
	if (!error && yi_gguf_find_tensor(loader->file, "rope_freqs.weight")) {
		struct yi_tensor freqs;

		error = find_tensor(loader, "rope_freqs.weight", &freqs, hp->head_dim / 2, 0);
		if (!error)
			model->rope_freqs = (const float *)(const void *)freqs.data;
	}
	/* Each layer has nine tensors: bounds the count by what the file really holds. */
	if (!error && hp->n_layer > loader->file->n_tensors / 9)
		error = yi_gguf_refuse_value(
			loader->file, yi_gguf_find(loader->file, "llama.block_count"),
			loader->error, "needs more than the %u tensors there are",
			loader->file->n_tensors);
	if (error)
		return error;
	model->layers = yi_mem_zeroed(YI_MEM_OTHER, hp->n_layer * sizeof(*model->layers));
	if (!model->layers)
		return yi_error_set(loader->error, YI_EXIT_TROUBLE, -ENOMEM, "%s: no memory",
				    loader->file->path);
	for (uint32_t i = 0; i < hp->n_layer; i++) {
		error = find_layer(loader, i);
		if (error)
			return error;
	}
	return loader->used == loader->file->n_tensors ? 0 : refuse_extra(loader);
}

/* Turns a file offset into an address; `skip` bytes of the file precede `data`. */
static void settle(struct yi_tensor *tensor, const uint8_t *data, uint64_t skip)
{
	tensor->data = data + ((uintptr_t)tensor->data - skip);
}

static void settle_tensors(struct yi_model *model, uint64_t skip)
{
	const uint8_t *data = model->data;

	settle(&model->embd, data, skip);
	settle(&model->output_norm, data, skip);
	settle(&model->output, data, skip);
	if (model->rope_freqs)
		model->rope_freqs =
			(const float *)(const void *)(data + ((uintptr_t)model->rope_freqs - skip));
	for (uint32_t i = 0; i < model->hp.n_layer; i++) {
		struct yi_layer *layer = &model->layers[i];

		settle(&layer->attn_norm, data, skip);
		settle(&layer->q, data, skip);
		settle(&layer->k, data, skip);
		settle(&layer->v, data, skip);
		settle(&layer->attn_output, data, skip);
		settle(&layer->ffn_norm, data, skip);
		settle(&layer->gate, data, skip);
		settle(&layer->up, data, skip);
		settle(&layer->down, data, skip);
	}
}

/* Touches every page of a mapping before it is needed. */
static void populate(const uint8_t *data, uint64_t bytes, enum yi_populate how)
{
	if (how == YI_POPULATE_WILLNEED)
		posix_madvise((void *)(uintptr_t)data, bytes, POSIX_MADV_WILLNEED);
	for (uint64_t at = 0; how == YI_POPULATE_ALL && at < bytes; at += 4096)
		(void)*(const volatile uint8_t *)(data + at);
}

static int load_data(struct yi_model *model, enum yi_populate how, struct yi_error *error)
{
	const struct yi_gguf *file = model->file;

	model->data =
		model->load == YI_LOAD_MMAP ? yi_gguf_map(file, error) : yi_gguf_read(file, error);
	if (!model->data)
		return -ENOMEM;
	if (model->load == YI_LOAD_MMAP)
		populate(model->data, file->file_bytes, how);
	settle_tensors(model, model->load == YI_LOAD_MMAP ? 0 : file->data_offset);
	return 0;
}

struct yi_model *yi_model_load(const char *path, enum yi_load load, enum yi_populate how,
			       struct yi_error *error)
{
	struct yi_model *model = yi_mem_zeroed(YI_MEM_OTHER, sizeof(*model));
	struct loader loader = {.model = model, .error = error};

	if (!model) {
		yi_error_set(error, YI_EXIT_TROUBLE, -ENOMEM, "%s: no memory", path);
		return NULL;
	}
	model->load = load;
	model->file = yi_gguf_open(path, error);
	if (!model->file)
		goto fail;
	loader.file = model->file;
	if (read_hparams(&loader) || find_tensors(&loader) || load_data(model, how, error))
		goto fail;
	if (model->file->data_bytes <= YI_MODEL_CHECK_BYTES && yi_model_check_data(model, error))
		goto fail;
	return model;
fail:
	yi_model_free(model);
	return NULL;
}

void yi_model_free(struct yi_model *model)
{
	if (!model)
		return;
	if (model->data && model->load == YI_LOAD_MMAP)
		munmap((void *)(uintptr_t)model->data, model->file->file_bytes);
	else if (model->data)
		yi_mem_free(YI_MEM_WEIGHTS, (void *)(uintptr_t)model->data);
	yi_mem_free(YI_MEM_OTHER, model->layers);
	yi_gguf_close(model->file);
	yi_mem_free(YI_MEM_OTHER, model);
}
