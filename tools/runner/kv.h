/* SPDX-License-Identifier: MIT */
/*
 * Keys and values of one sequence.
 *
 * A cache holds positions 0 .. len-1 of its sequence, one row of keys and one of values for each
 * position and layer.  Its own rows lie in one pair of buffers per layer, so that growing is
 * realloc of 2 * n_layer blocks:
 *
 *	grow  buffers grow by realloc, half as large again each time, at most to max_tokens
 *	full  buffers for max_tokens at creation, filled from the front
 *	ring  buffers for max_tokens at creation, the oldest token is overwritten beyond that
 *
 * The first tokens may lie in parts that several sequences share.  A part never changes and
 * lives as long as a sequence stands on it: sharing freezes what a sequence has, and both go on
 * in buffers of their own.
 *
 * One thread at a time may use a cache; caches that share parts may be used at the same time.
 */
#ifndef YI_KV_H
#define YI_KV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/runner/model.h"

enum yi_kv_alloc { YI_KV_GROW, YI_KV_FULL, YI_KV_RING };

struct yi_kv;
/* Buffers of finished sessions, by how many tokens they hold; any thread. */
struct yi_kv_pool;

struct yi_kv_config {
	const struct yi_model *model;
	enum yi_type type; /* YI_F16, YI_F32 or YI_Q8_0 */
	enum yi_kv_alloc alloc;
	uint32_t max_tokens;
	struct yi_kv_pool *pool; /* NULL: none */
};

/* At most `max_bytes` of idle buffers are kept.  NULL: no memory. */
struct yi_kv_pool *yi_kv_pool_create(uint64_t max_bytes);
void yi_kv_pool_free(struct yi_kv_pool *pool);
uint64_t yi_kv_pool_bytes(struct yi_kv_pool *pool);
/* Gives idle buffers back to malloc, e.g. after a refusal. */
void yi_kv_pool_trim(struct yi_kv_pool *pool);

/* NULL: no memory.  config is copied. */
struct yi_kv *yi_kv_create(const struct yi_kv_config *config);
/* Frees a cache; buffers that are not shared go to the pool or to free. */
void yi_kv_free(struct yi_kv *kv);

uint32_t yi_kv_len(const struct yi_kv *kv);
/* First position that the token at `position` may see: 0, or later once a ring has come round. */
uint32_t yi_kv_first(const struct yi_kv *kv, uint32_t position);
/* How many tokens may be written before the first of them is read: a ring that has come round
 * takes one at a time, because each overwrites a row that the one before still sees. */
uint32_t yi_kv_step(const struct yi_kv *kv);
/* Room for `tokens` more.  0; -ENOMEM: no memory, nothing lost; -ENOSPC: beyond max_tokens. */
int yi_kv_reserve(struct yi_kv *kv, uint32_t tokens);

/*
 * The forward pass: rows of reserved positions (len .. len + tokens - 1) are written layer by
 * layer and count once they are appended.  Rows of different positions may be written by
 * different threads at once.  kv_dim floats, keys already rotated.
 */
void yi_kv_write(struct yi_kv *kv, uint32_t layer, uint32_t position, const float *keys,
		 const float *values);
void yi_kv_append(struct yi_kv *kv, uint32_t tokens);

/* Rows of consecutive positions that lie one behind the other, row_bytes apart. */
struct yi_kv_rows {
	const uint8_t *keys, *values;
	uint32_t position, count;
};
/*
 * Walks the rows of a layer: `for (at = first; yi_kv_next(kv, layer, &at, end, &rows);)` visits
 * positions first .. end-1, in order, in as few stretches as memory allows.  Written rows that
 * are not appended yet may be read too.
 */
bool yi_kv_next(const struct yi_kv *kv, uint32_t layer, uint32_t *at, uint32_t end,
		struct yi_kv_rows *ret_rows);
enum yi_type yi_kv_type(const struct yi_kv *kv);
size_t yi_kv_row_bytes(const struct yi_kv *kv);

/* A new sequence that shares the first `tokens` of `kv` (no copy).  NULL: no memory, or a ring. */
struct yi_kv *yi_kv_share(struct yi_kv *kv, uint32_t tokens);
/* A new sequence with its own copy of all that isn't shared already.  NULL: no memory. */
struct yi_kv *yi_kv_copy(const struct yi_kv *kv);
/* Keeps the first `tokens`.  -EINVAL: a ring has overwritten what lies before. */
int yi_kv_cut(struct yi_kv *kv, uint32_t tokens);
/* Removes tokens [from, from + tokens) and moves later ones down, rotating their keys.  0,
 * -EINVAL (a ring, or not that many tokens) or -ENOMEM, nothing changed then. */
int yi_kv_shift(struct yi_kv *kv, uint32_t from, uint32_t tokens);

/*
 * State as bytes in a file: the rows, and the ids of the session (at least those in the cache).
 * Restore makes a cache of `config` from it; ids are YI_MEM_REQUESTS and the caller's.
 * Refusals in error, -1 or NULL then.
 */
int yi_kv_save(const struct yi_kv *kv, const uint32_t *ids, uint32_t n_ids, int fd,
	       struct yi_error *error);
struct yi_kv *yi_kv_restore(const struct yi_kv_config *config, int fd, uint32_t **ret_ids,
			    uint32_t *ret_n_ids, struct yi_error *error);
/* How many ids a state file holds; leaves the file at its start. */
int yi_kv_peek(int fd, uint32_t *ret_n_ids, struct yi_error *error);

uint64_t yi_kv_bytes_per_token(const struct yi_hparams *hp, enum yi_type type);

#endif
