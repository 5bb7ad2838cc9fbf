/* SPDX-License-Identifier: MIT */
#include "cuda_hooks/memory.h"

#include "shim/base/bits.h"
#include "shim/os/mem.h"

#define CHUNK_BYTES ((size_t)256 << 10)
#define LEAST_LOG2 6u
#define MOST_LOG2 16u

_Static_assert(1u << LEAST_LOG2 == TM_CUDA_RECORD_BYTES, "records are the smallest pieces");

struct tm_cuda_piece *tm_cuda_memory_records;
/* [lock] by log2 of the size; the smallest have a list above */
static struct tm_cuda_piece *free_list[MOST_LOG2 + 1];
static unsigned char *chunk_at; /* [lock] */
static size_t chunk_left;       /* [lock] */

static size_t mapping_bytes(size_t bytes)
{
	return tm_bits_align_up(bytes, 65536);
}

static struct tm_cuda_piece **list_of(unsigned n)
{
	return n == LEAST_LOG2 ? &tm_cuda_memory_records : &free_list[n];
}

/*
 * Maps pages, prefaulted many at a time where the kernel can: one fault takes longer than the rest
 * of a call.
 */
static void *map(size_t bytes)
{
	void *p = tm_mem_map(bytes);
	if (p != NULL)
		(void)tm_mem_populate_write(p, bytes);
	return p;
}

static unsigned log2_of(size_t bytes)
{
	unsigned n = tm_bits_log2_up(bytes);
	return n < LEAST_LOG2 ? LEAST_LOG2 : n;
}

void *tm_cuda_memory_take(size_t bytes)
{
	unsigned n = log2_of(bytes);
	size_t room = (size_t)1 << n;
	void *p;
	if (n > MOST_LOG2)
		return map(mapping_bytes(bytes));
	if (*list_of(n) != NULL) {
		struct tm_cuda_piece *piece = *list_of(n);
		*list_of(n) = piece->next;
		TM_CUDA_MEMORY_ALLOW(piece, room);
		__builtin_memset(piece, 0, room);
		return piece;
	}
	if (chunk_left < room) {
		/* What is left of the old chunk is lost: less than the piece that did not fit. */
		p = map(CHUNK_BYTES);
		if (p == NULL)
			return NULL;
		chunk_at = p;
		chunk_left = CHUNK_BYTES;
	}
	p = chunk_at;
	chunk_at += room;
	chunk_left -= room;
	return p;
}

void tm_cuda_memory_give(void *p, size_t bytes)
{
	unsigned n = log2_of(bytes);
	struct tm_cuda_piece *piece = p;
	if (p == NULL)
		return;
	if (n > MOST_LOG2) {
		tm_mem_unmap_raw(p, mapping_bytes(bytes));
		return;
	}
	piece->next = *list_of(n);
	*list_of(n) = piece;
	TM_CUDA_MEMORY_FORBID(piece, (size_t)1 << n);
}
