/* SPDX-License-Identifier: MIT */
/*
 * The forward pass: a batch of tokens of any number of sequences in, rows of logits out.
 *
 * Results don't depend on the number of threads nor on how tokens are split into batches: each
 * output element is computed by one thread in a fixed order.  An evaluation allocates its
 * activations with malloc and frees them, as an engine without a graph allocator does.
 *
 * One thread at a time may use a struct yi_forward; several of them may share a model.
 */
#ifndef YI_FORWARD_H
#define YI_FORWARD_H

#include <stdbool.h>

#include "tools/runner/kv.h"
#include "tools/runner/threads.h"
#include "tools/runner/tiers.h"

enum yi_exactness {
	YI_FAST, /* the fastest kernels this CPU runs */
	YI_EXACT /* the reference, bit for bit */
};

/* One token to evaluate.  Its position is the length its cache has at that moment: tokens of one
 * cache follow each other in the batch in the order of their positions. */
struct yi_item {
	struct yi_kv *kv;
	uint32_t token; /* < n_vocab */
	float *logits;  /* n_vocab floats to fill; NULL: not wanted */
};

struct yi_forward;

/* NULL: no memory. */
struct yi_forward *yi_forward_create(const struct yi_model *model, struct yi_workers *workers,
				     enum yi_exactness exactness);
void yi_forward_free(struct yi_forward *forward);
/* If tiers->due is set, the next evaluation takes that sample while its activations are live. */
void yi_forward_watch(struct yi_forward *forward, struct yi_tiers *tiers);

/*
 * Appends the tokens to their caches (reserving room) and fills the logits asked for.  0; -ENOMEM,
 * -ENOSPC or -EDOM (a result is not a finite number, yi_model_check_data may say why): nothing
 * was appended, every cache is as before and usable, except that a ring for which more tokens than
 * yi_kv_step were given may have lost its oldest and should be freed.
 */
int yi_forward_eval(struct yi_forward *forward, const struct yi_item *items, uint32_t n_items);

/* Bytes of activations that a batch of that many tokens takes at its peak. */
uint64_t yi_forward_bytes(const struct yi_hparams *hp, uint32_t n_items, uint32_t n_logits,
			  uint32_t n_visible);

#endif
