/* SPDX-License-Identifier: MIT */
/*
 * What a model file may hold beyond the shapes of its tensors: a vocabulary that is consistent
 * with itself, and parameters that are numbers.
 */
#ifndef YI_MODEL_CHECK_H
#define YI_MODEL_CHECK_H

#include "tools/runner/model.h"

/*
 * Files with at most this much tensor data are checked completely when loaded. Larger ones would
 * lose the benefit of mapping (unused pages are never read); they are checked by `info --check` and
 * when a result is not a number.
 */
#define YI_MODEL_CHECK_BYTES (UINT64_C(64) << 20)

/* Counts the tokens; refuses arrays of other lengths, ids out of range, missing byte tokens. */
int yi_model_check_vocab(const struct yi_gguf *file, uint32_t *ret_n_vocab, struct yi_error *error);

/* Refuses infinite and NaN parameters and scales, naming the first. */
int yi_model_check_data(const struct yi_model *model, struct yi_error *error);

#endif
