/* SPDX-License-Identifier: MIT */
/*
 * See mem.h. A block's size is asked from the allocator (malloc_usable_size), so that no header of
 * ours shifts the addresses that the allocator chose.
 */
#include "tools/runner/mem.h"

#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct count {
	_Atomic uint64_t live, peak, blocks, allocs, frees, refused;
};

static struct count counts[YI_MEM_CLASSES];
static _Atomic uint64_t live_bytes, peak_bytes, limit_bytes;
static const struct yi_mem_watch *watch;

static void raise_peak(_Atomic uint64_t *peak, uint64_t value)
{
	uint64_t old = atomic_load_explicit(peak, memory_order_relaxed);

	while (old < value &&
	       !atomic_compare_exchange_weak_explicit(peak, &old, value, memory_order_relaxed,
						      memory_order_relaxed))
		;
}

/* Charges `bytes` to the limit. */
static int charge(enum yi_mem_class class, uint64_t bytes)
{
	uint64_t limit = atomic_load_explicit(&limit_bytes, memory_order_relaxed);
	uint64_t now = atomic_fetch_add_explicit(&live_bytes, bytes, memory_order_relaxed);

	if (limit && (bytes > limit || now > limit - bytes)) {
		atomic_fetch_sub_explicit(&live_bytes, bytes, memory_order_relaxed);
		atomic_fetch_add_explicit(&counts[class].refused, 1, memory_order_relaxed);
		errno = ENOMEM;
		return -ENOMEM;
	}
	return 0;
}

static void uncharge(uint64_t bytes)
{
	atomic_fetch_sub_explicit(&live_bytes, bytes, memory_order_relaxed);
}

/* Replaces the charge for the requested size by the block's real size, and counts it. */
static void *book(enum yi_mem_class class, void *block, uint64_t charged)
{
	struct count *count = &counts[class];
	uint64_t bytes, live;

	if (!block) {
		uncharge(charged);
		atomic_fetch_add_explicit(&count->refused, 1, memory_order_relaxed);
		errno = ENOMEM;
		return NULL;
	}
	bytes = malloc_usable_size(block);
	atomic_fetch_add_explicit(&live_bytes, bytes - charged, memory_order_relaxed);
	raise_peak(&peak_bytes, atomic_load_explicit(&live_bytes, memory_order_relaxed));
	live = atomic_fetch_add_explicit(&count->live, bytes, memory_order_relaxed) + bytes;
	raise_peak(&count->peak, live);
	atomic_fetch_add_explicit(&count->blocks, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&count->allocs, 1, memory_order_relaxed);
	if (watch)
		watch->had(class, block, bytes);
	return block;
}

void *yi_mem_alloc(enum yi_mem_class class, size_t bytes)
{
	bytes = bytes ? bytes : 1;
	return charge(class, bytes) ? NULL : book(class, malloc(bytes), bytes);
}

void *yi_mem_zeroed(enum yi_mem_class class, size_t bytes)
{
	bytes = bytes ? bytes : 1;
	return charge(class, bytes) ? NULL : book(class, calloc(1, bytes), bytes);
}

void *yi_mem_aligned(enum yi_mem_class class, size_t align, size_t bytes)
{
	void *block = NULL;

	bytes = bytes ? bytes : 1;
	if (charge(class, bytes))
		return NULL;
	if (posix_memalign(&block, align, bytes))
		block = NULL;
	return book(class, block, bytes);
}

void *yi_mem_array(enum yi_mem_class class, size_t count, size_t bytes)
{
	size_t total;

	if (__builtin_mul_overflow(count, bytes, &total)) {
		errno = ENOMEM;
		return NULL;
	}
	return yi_mem_alloc(class, total);
}

void *yi_mem_resize(enum yi_mem_class class, void *block, size_t bytes)
{
	struct count *count = &counts[class];
	uint64_t old, more;
	void *moved;

	if (!block)
		return yi_mem_alloc(class, bytes);
	bytes = bytes ? bytes : 1;
	old = malloc_usable_size(block);
	more = bytes > old ? bytes - old : 0;
	if (more && charge(class, more))
		return NULL;
	/* Before another thread can get the same address. */
	if (watch)
		watch->goes(block);
	moved = realloc(block, bytes);
	if (!moved) {
		if (watch)
			watch->had(class, block, old);
		uncharge(more);
		atomic_fetch_add_explicit(&count->refused, 1, memory_order_relaxed);
		errno = ENOMEM;
		return NULL;
	}
	atomic_fetch_sub_explicit(&count->live, old, memory_order_relaxed);
	atomic_fetch_sub_explicit(&count->blocks, 1, memory_order_relaxed);
	book(class, moved, old + more);
	if (watch)
		watch->moved(moved, moved, old < bytes ? old : bytes);
	return moved;
}

char *yi_mem_text(enum yi_mem_class class, const char *text, size_t bytes)
{
	char *copy = bytes < SIZE_MAX ? yi_mem_alloc(class, bytes + 1) : NULL;

	if (copy) {
		memcpy(copy, text, bytes);
		copy[bytes] = 0;
	}
	return copy;
}

void yi_mem_free(enum yi_mem_class class, void *block)
{
	struct count *count = &counts[class];
	uint64_t bytes;

	if (!block)
		return;
	bytes = malloc_usable_size(block);
	if (watch)
		watch->goes(block);
	free(block);
	atomic_fetch_sub_explicit(&live_bytes, bytes, memory_order_relaxed);
	atomic_fetch_sub_explicit(&count->live, bytes, memory_order_relaxed);
	atomic_fetch_sub_explicit(&count->blocks, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&count->frees, 1, memory_order_relaxed);
}

void yi_mem_set_watch(const struct yi_mem_watch *who)
{
	watch = who;
}

void yi_mem_set_limit(uint64_t bytes)
{
	atomic_store_explicit(&limit_bytes, bytes, memory_order_relaxed);
}

void yi_mem_read(enum yi_mem_class class, struct yi_mem_count *ret_count)
{
	struct count *count = &counts[class];

	ret_count->live_bytes = atomic_load_explicit(&count->live, memory_order_relaxed);
	ret_count->peak_bytes = atomic_load_explicit(&count->peak, memory_order_relaxed);
	ret_count->blocks = atomic_load_explicit(&count->blocks, memory_order_relaxed);
	ret_count->allocs = atomic_load_explicit(&count->allocs, memory_order_relaxed);
	ret_count->frees = atomic_load_explicit(&count->frees, memory_order_relaxed);
	ret_count->refused = atomic_load_explicit(&count->refused, memory_order_relaxed);
}

uint64_t yi_mem_live_bytes(void)
{
	return atomic_load_explicit(&live_bytes, memory_order_relaxed);
}

uint64_t yi_mem_peak_bytes(void)
{
	return atomic_load_explicit(&peak_bytes, memory_order_relaxed);
}

const char *yi_mem_class_name(enum yi_mem_class class)
{
	static const char *const names[YI_MEM_CLASSES] = {
		"weights", "kv", "activations", "tokenizer", "requests", "other",
	};

	return names[class];
}
