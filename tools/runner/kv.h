/* SPDX-License-Identifier: MIT */
/*
 * Keys and values of one sequence.
 *
 * A cache holds positions 0 .. len-1 of its sequence.  It may stand on a shared prefix: the
 * first tokens then belong to another cache, which is kept alive by a reference and whose shared
 * tokens nobody changes.  Its own tokens live in one pair of buffers per layer, so that growing
 * is realloc of 2 * n_layer blocks:
 *
 *	grow  buffers grow by realloc, half as large again each time, at most to max_tokens
 *	full  buffers for max_tokens at creation, filled from the front
 *	ring  buffers for max_tokens at creation, the oldest token is overwritten beyond that
 *
 * One thread at a time may use a cache; caches that share a prefix may be used at the same time.
 */
#ifndef YI_KV_H
#define YI_KV_H

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
/* Drops a reference; buffers go to the pool or to free with the last one. */
void yi_kv_free(struct yi_kv *kv);

uint32_t yi_kv_len(const struct yi_kv *kv);
/* Positions the next token may see: len, or at most max_tokens for a ring. */
uint32_t yi_kv_visible(const struct yi_kv *kv);
/* Room for `tokens` more.  0; -ENOMEM: no memory, nothing lost; -ENOSPC: beyond max_tokens. */
int yi_kv_reserve(struct yi_kv *kv, uint32_t tokens);

/* A new sequence that shares the first `tokens` of `kv` (no copy).  NULL: no memory. */
struct yi_kv *yi_kv_share(struct yi_kv *kv, uint32_t tokens);
/* A new sequence with its own copy of everything.  NULL: no memory. */
struct yi_kv *yi_kv_copy(const struct yi_kv *kv);
/* Keeps the first `tokens`.  -EBUSY: some of the rest are shared by others. */
int yi_kv_cut(struct yi_kv *kv, uint32_t tokens);
/* Removes tokens [from, from + tokens) and moves later ones down, rotating their keys. */
int yi_kv_shift(struct yi_kv *kv, uint32_t from, uint32_t tokens);

/* State as bytes in a file; restore makes a cache of `config` from it (refusals in error). */
int yi_kv_save(const struct yi_kv *kv, int fd, struct yi_error *error);
struct yi_kv *yi_kv_restore(const struct yi_kv_config *config, int fd, struct yi_error *error);

uint64_t yi_kv_bytes(const struct yi_kv *kv); /* of its own buffers */
uint64_t yi_kv_bytes_per_token(const struct yi_hparams *hp, enum yi_type type);

#endif
