/* SPDX-License-Identifier: MIT */
/*
 * memory: memory for the hooks' own records, in mappings of its own. The heap can't be used: a hook
 * may run inside an allocation, and the records must survive whatever the program does to its heap.
 *
 * Pieces are powers of two from 64 bytes on; a piece larger than a chunk has a mapping of its own.
 * Freed pieces go to a free list per size. Callers hold tm_hooks_lock, except for pieces that are
 * whole mappings.
 */
#ifndef TM_CUDA_MEMORY_H
#define TM_CUDA_MEMORY_H

#include "shim/base/attrs.h"

/* Returns a zeroed piece; NULL: no memory. */
void *tm_cuda_memory_take(size_t bytes);

/* Frees a piece. bytes: as requested; NULL is ignored. */
void tm_cuda_memory_give(void *p, size_t bytes);

/*
 * The smallest pieces, which hold the pools' records. Not zeroed: the caller fills in every field.
 */
#define TM_CUDA_RECORD_BYTES 64u

struct tm_cuda_piece {
	struct tm_cuda_piece *next;
};

/* Under AddressSanitizer freed pieces are poisoned, except for the link. */
#ifdef __SANITIZE_ADDRESS__
void __asan_poison_memory_region(void const volatile *at, size_t bytes);
void __asan_unpoison_memory_region(void const volatile *at, size_t bytes);
#define TM_CUDA_MEMORY_FORBID(p, bytes)                                                            \
	__asan_poison_memory_region((struct tm_cuda_piece *)(p) + 1,                               \
				    (bytes) - sizeof(struct tm_cuda_piece))
#define TM_CUDA_MEMORY_ALLOW(p, bytes) __asan_unpoison_memory_region(p, bytes)
#else
#define TM_CUDA_MEMORY_FORBID(p, bytes) ((void)0)
#define TM_CUDA_MEMORY_ALLOW(p, bytes) ((void)0)
#endif

/* [lock] Free list of the smallest pieces. */
extern TM_HIDDEN struct tm_cuda_piece *tm_cuda_memory_records;

TM_INLINE void *tm_cuda_memory_take_record(void)
{
	struct tm_cuda_piece *piece = tm_cuda_memory_records;
	if (TM_UNLIKELY(piece == NULL))
		return tm_cuda_memory_take(TM_CUDA_RECORD_BYTES);
	tm_cuda_memory_records = piece->next;
	TM_CUDA_MEMORY_ALLOW(piece, TM_CUDA_RECORD_BYTES);
	return piece;
}

TM_INLINE void tm_cuda_memory_give_record(void *p)
{
	struct tm_cuda_piece *piece = p;
	piece->next = tm_cuda_memory_records;
	tm_cuda_memory_records = piece;
	TM_CUDA_MEMORY_FORBID(piece, TM_CUDA_RECORD_BYTES);
}

#endif
