/* SPDX-License-Identifier: MIT */
/*
 * memory: room for the hooks' own records, in mappings of its own. The heap may not be used: a hook
 * can run inside an allocation, and its records must outlive what the program does to its heap.
 *
 * Pieces are powers of two from 64 bytes on; larger ones than a chunk have a mapping each. Freed pieces
 * wait in a list per size. Callers hold tm_cuda_lock, but for the whole mappings.
 */
#ifndef TM_CUDA_MEMORY_H
#define TM_CUDA_MEMORY_H

#include "shim/base/attrs.h"

/* Zeroed. NULL: no memory. */
void *tm_cuda_memory_take(size_t bytes);

/* bytes as they were asked for; NULL is ignored. */
void tm_cuda_memory_give(void *p, size_t bytes);

#endif
