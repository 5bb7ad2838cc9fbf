/* SPDX-License-Identifier: MIT */
/*
 * Caches changed as a whole: shifted within their context, saved to a file, restored from one.
 */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "tools/runner/kv_buffers.h"
#include "tools/runner/mem.h"

#define MAGIC "yi-kv 2\n"
/* Ids read at once. */
#define STEP 65536u

/* Header in front of the rows; little-endian, like the machines that this runs on. */
struct header {
	char magic[8];
	uint32_t type, n_layer, kv_dim, head_dim;
	uint32_t first, len; /* rows of positions first .. len - 1 follow */
	uint32_t row_bytes;
	uint32_t n_ids;    /* behind the rows */
	uint64_t checksum; /* of the rows and the ids */
};

/* Gives the sequence own rows from position `from` on. -ENOMEM: unchanged. */
static int own_from(struct yi_kv *kv, uint32_t from)
{
	uint32_t n_layer = kv->config.model->hp.n_layer;
	struct yi_kv_buffers *buffers;
	uint32_t rows =
		kv->config.alloc == YI_KV_FULL ? kv->config.max_tokens - from : kv->len - from;

	if (from >= kv->own_start)
		return 0;
	buffers = yi_kv_buffers_take(&kv->config, rows);
	if (!buffers)
		return -ENOMEM;
	for (uint32_t layer = 0; layer < n_layer; layer++) {
		struct yi_kv_rows run;

		for (uint32_t at = from; yi_kv_next(kv, layer, &at, kv->len, &run);) {
			size_t to = (run.position - from) * kv->row_bytes;

			memcpy(buffers->blocks[layer] + to, run.keys, run.count * kv->row_bytes);
			memcpy(buffers->blocks[n_layer + layer] + to, run.values,
			       run.count * kv->row_bytes);
		}
	}
	yi_kv_buffers_drop(kv->own);
	kv->own = buffers;
	while (kv->n_parts && kv->parts[kv->n_parts - 1].start >= from)
		yi_kv_buffers_drop(kv->parts[--kv->n_parts].buffers);
	if (kv->n_parts)
		kv->parts[kv->n_parts - 1].tokens = from - kv->parts[kv->n_parts - 1].start;
	kv->own_start = from;
	return 0;
}

/* Rotates keys back by `tokens` positions: pairs of neighbours, one angle per pair. */
static void rotate_back(const struct yi_model *model, float *keys, uint32_t tokens)
{
	const struct yi_hparams *hp = &model->hp;
	float scale = powf(hp->rope_base, -2.0f / (float)hp->head_dim);

	for (uint32_t head = 0; head < hp->n_head_kv; head++) {
		float *x = keys + head * hp->head_dim;
		float theta = -(float)tokens;

		for (uint32_t i = 0; i < hp->head_dim / 2; i++, theta *= scale) {
			float angle = model->rope_freqs ? theta / model->rope_freqs[i] : theta;
			float c = cosf(angle), s = sinf(angle);
			float a = x[2 * i], b = x[2 * i + 1];

			x[2 * i] = a * c - b * s;
			x[2 * i + 1] = a * s + b * c;
		}
	}
}

int yi_kv_shift(struct yi_kv *kv, uint32_t from, uint32_t tokens)
{
	const struct yi_hparams *hp = &kv->config.model->hp;
	uint32_t after;
	float *keys;

	if (kv->config.alloc == YI_KV_RING || from > kv->len || tokens > kv->len - from)
		return -EINVAL;
	if (tokens == 0)
		return 0;
	keys = yi_mem_array(YI_MEM_ACTIVATIONS, hp->kv_dim, sizeof(*keys));
	if (!keys || own_from(kv, from)) {
		yi_mem_free(YI_MEM_ACTIVATIONS, keys);
		return -ENOMEM;
	}
	after = kv->len - from - tokens;
	for (uint32_t i = 0; i < 2 * hp->n_layer; i++) {
		uint8_t *row = kv->own->blocks[i] + (from - kv->own_start) * kv->row_bytes;

		memmove(row, row + tokens * kv->row_bytes, after * kv->row_bytes);
		for (uint32_t j = 0; i < hp->n_layer && j < after; j++, row += kv->row_bytes) {
			kv->traits->dequant(row, keys, hp->kv_dim);
			rotate_back(kv->config.model, keys, tokens);
			kv->traits->quant_vec(keys, row, hp->kv_dim);
		}
	}
	kv->len -= tokens;
	yi_mem_free(YI_MEM_ACTIVATIONS, keys);
	return 0;
}

static int put(int fd, const void *bytes, size_t len, struct yi_error *error)
{
	const char *at = bytes;

	while (len) {
		ssize_t done = write(fd, at, len);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return yi_error_set(error, YI_EXIT_TROUBLE, -EIO,
					    "state can't be written: %s", strerror(errno));
		at += done;
		len -= (size_t)done;
	}
	return 0;
}

static int get(int fd, void *bytes, size_t len, struct yi_error *error)
{
	char *at = bytes;

	while (len) {
		ssize_t done = read(fd, at, len);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return yi_error_set(error, YI_EXIT_TROUBLE, -EIO, "state can't be read: %s",
					    strerror(errno));
		if (done == 0)
			return yi_error_set(error, YI_EXIT_TROUBLE, -EINVAL,
					    "state ends before its rows do");
		at += done;
		len -= (size_t)done;
	}
	return 0;
}

static uint64_t checksum(uint64_t sum, const uint8_t *bytes, size_t len)
{
	for (; len >= 8; bytes += 8, len -= 8) {
		uint64_t word;

		memcpy(&word, bytes, 8);
		sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
		sum ^= sum >> 29;
	}
	for (; len; bytes++, len--)
		sum = (sum ^ *bytes) * 0x100000001b3u;
	return sum;
}

enum pass { PASS_SUM, PASS_WRITE };

static int each_row(const struct yi_kv *kv, uint32_t first, enum pass pass, int fd, uint64_t *sum,
		    struct yi_error *error)
{
	int code = 0;

	for (uint32_t layer = 0; layer < kv->config.model->hp.n_layer; layer++) {
		for (int values = 0; values < 2; values++) {
			struct yi_kv_rows run;

			for (uint32_t at = first;
			     code == 0 && yi_kv_next(kv, layer, &at, kv->len, &run);) {
				const uint8_t *rows = values ? run.values : run.keys;

				/* Row by row, in the order in which they will be read. */
				for (uint32_t i = 0; pass == PASS_SUM && i < run.count; i++)
					*sum = checksum(*sum, rows + i * kv->row_bytes,
							kv->row_bytes);
				if (pass == PASS_WRITE)
					code = put(fd, rows, run.count * kv->row_bytes, error);
			}
		}
	}
	return code;
}

static void fill_header(const struct yi_kv_config *config, size_t row_bytes, struct header *ret)
{
	memset(ret, 0, sizeof(*ret));
	memcpy(ret->magic, MAGIC, sizeof(ret->magic));
	ret->type = config->type;
	ret->n_layer = config->model->hp.n_layer;
	ret->kv_dim = config->model->hp.kv_dim;
	ret->head_dim = config->model->hp.head_dim;
	ret->row_bytes = (uint32_t)row_bytes;
}

int yi_kv_save(const struct yi_kv *kv, const uint32_t *ids, uint32_t n_ids, int fd,
	       struct yi_error *error)
{
	struct header header;
	uint32_t first = kv->len ? yi_kv_first(kv, kv->len - 1) : 0;
	int code;

	fill_header(&kv->config, kv->row_bytes, &header);
	header.first = first;
	header.len = kv->len;
	header.n_ids = n_ids;
	each_row(kv, first, PASS_SUM, fd, &header.checksum, error);
	header.checksum = checksum(header.checksum, (const uint8_t *)ids, n_ids * sizeof(*ids));
	code = put(fd, &header, sizeof(header), error);
	if (code == 0)
		code = each_row(kv, first, PASS_WRITE, fd, &header.checksum, error);
	return code ? code : put(fd, ids, n_ids * sizeof(*ids), error);
}

int yi_kv_peek(int fd, uint32_t *ret_n_ids, struct yi_error *error)
{
	struct header header;

	if (get(fd, &header, sizeof(header), error))
		return -1;
	if (memcmp(header.magic, MAGIC, sizeof(header.magic)))
		return yi_error_set(error, YI_EXIT_TROUBLE, -1, "not a saved state");
	if (lseek(fd, 0, SEEK_SET) != 0)
		return yi_error_set(error, YI_EXIT_TROUBLE, -1,
				    "state is not in a file that can be read twice");
	*ret_n_ids = header.n_ids;
	return 0;
}

/* Reserves room in a new cache for the rows that the header announces. */
static struct yi_kv *make_room(const struct yi_kv_config *config, const struct header *header,
			       struct yi_error *error)
{
	struct yi_kv *kv;

	if (config->alloc != YI_KV_RING && (header->first || header->len > config->max_tokens)) {
		yi_error_set(error, YI_EXIT_TROUBLE, -ENOSPC,
			     "state of %u tokens from %u on does not fit a context of %u",
			     header->len, header->first, config->max_tokens);
		return NULL;
	}
	if (header->len - header->first > config->max_tokens ||
	    (header->first && header->len - header->first != config->max_tokens)) {
		yi_error_set(error, YI_EXIT_TROUBLE, -ENOSPC,
			     "state of %u tokens does not fit a ring of %u",
			     header->len - header->first, config->max_tokens);
		return NULL;
	}
	kv = yi_kv_create(config);
	if (!kv || (header->len && config->alloc != YI_KV_RING && yi_kv_reserve(kv, header->len))) {
		yi_kv_free(kv);
		yi_error_set(error, YI_EXIT_TROUBLE, -ENOMEM, "no memory for the state");
		return NULL;
	}
	kv->len = header->len;
	return kv;
}

static int read_rows(struct yi_kv *kv, int fd, const struct header *header, uint64_t *sum,
		     struct yi_error *error)
{
	uint32_t n_layer = kv->config.model->hp.n_layer;
	int code = 0;

	for (uint32_t i = 0; i < 2 * n_layer; i++) {
		uint8_t *block = kv->own ? kv->own->blocks[(i & 1) * n_layer + i / 2] : NULL;

		for (uint32_t at = header->first; code == 0 && at < header->len; at++) {
			uint8_t *row = block + yi_kv_own_row(kv, at) * kv->row_bytes;

			code = get(fd, row, kv->row_bytes, error);
			if (code == 0)
				*sum = checksum(*sum, row, kv->row_bytes);
		}
	}
	return code;
}

/* Reads in steps, since the file may hold less than the header announces. */
static uint32_t *read_ids(int fd, const struct header *header, uint32_t n_vocab,
			  struct yi_error *error)
{
	uint32_t *ids = NULL, count = 0;

	do {
		uint32_t more = header->n_ids - count < STEP ? header->n_ids - count : STEP;
		uint32_t *list =
			yi_mem_resize(YI_MEM_REQUESTS, ids, ((size_t)count + more) * sizeof(*ids));

		if (!list)
			yi_error_set(error, YI_EXIT_TROUBLE, -1, "no memory for the state");
		else
			ids = list;
		if (!list || get(fd, ids + count, more * sizeof(*ids), error))
			goto fail;
		for (uint32_t end = count + more; count < end; count++)
			if (ids[count] >= n_vocab) {
				yi_error_set(error, YI_EXIT_TROUBLE, -1,
					     "state holds id %u, which is no token", ids[count]);
				goto fail;
			}
	} while (count < header->n_ids);
	return ids;
fail:
	yi_mem_free(YI_MEM_REQUESTS, ids);
	return NULL;
}

static uint32_t *read_all(struct yi_kv *kv, int fd, const struct header *header,
			  struct yi_error *error)
{
	uint64_t sum = 0;
	uint32_t *ids = NULL;
	char more;

	if (read_rows(kv, fd, header, &sum, error) == 0)
		ids = read_ids(fd, header, kv->config.model->hp.n_vocab, error);
	if (!ids)
		return NULL;
	sum = checksum(sum, (const uint8_t *)ids, header->n_ids * sizeof(*ids));
	if (sum == header->checksum && read(fd, &more, 1) == 0)
		return ids;
	yi_error_set(error, YI_EXIT_TROUBLE, -1, "state is damaged: %s",
		     sum == header->checksum ? "it goes on behind its end"
					     : "its checksum differs");
	yi_mem_free(YI_MEM_REQUESTS, ids);
	return NULL;
}

struct yi_kv *yi_kv_restore(const struct yi_kv_config *config, int fd, uint32_t **ret_ids,
			    uint32_t *ret_n_ids, struct yi_error *error)
{
	const struct yi_type_traits *traits = yi_type_find(config->type);
	struct header header, wanted;
	struct yi_kv *kv;
	uint32_t *ids;

	fill_header(config, config->model->hp.kv_dim / traits->block * traits->block_bytes,
		    &wanted);
	if (get(fd, &header, sizeof(header), error))
		return NULL;
	if (memcmp(header.magic, wanted.magic, sizeof(header.magic))) {
		yi_error_set(error, YI_EXIT_TROUBLE, -1, "not a saved state");
		return NULL;
	}
	if (header.type != wanted.type || header.n_layer != wanted.n_layer ||
	    header.kv_dim != wanted.kv_dim || header.head_dim != wanted.head_dim ||
	    header.row_bytes != wanted.row_bytes) {
		yi_error_set(error, YI_EXIT_TROUBLE, -1,
			     "state is of another model or type of keys and values");
		return NULL;
	}
	if (header.first > header.len || header.n_ids < header.len) {
		yi_error_set(error, YI_EXIT_TROUBLE, -1, "state is damaged: %u rows, %u ids",
			     header.len, header.n_ids);
		return NULL;
	}
	kv = make_room(config, &header, error);
	if (!kv)
		return NULL;
	ids = read_all(kv, fd, &header, error);
	if (!ids) {
		yi_kv_free(kv);
		return NULL;
	}
	*ret_ids = ids;
	*ret_n_ids = header.n_ids;
	return kv;
}
