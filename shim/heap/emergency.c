/* SPDX-License-Identifier: MIT */
#include "shim/heap/emergency.h"

#include <stdatomic.h>

#include "shim/os/mem.h"

#define CHUNKS 16u
#define CHUNK_BYTES ((uint32_t)64 << 10)
#define CHUNK_BLOCK_MAX ((size_t)16 << 10)
/* Separate mappings for larger requests; a fixed number, since this is for emergencies. */
#define MAPPINGS 64u
#define RESETTING ((uint32_t)1 << 31)
#define MAGIC_LIVE UINT64_C(0x7465726d6c697665)

/* In front of every block of a chunk. */
struct header {
	uint64_t magic; /* MAGIC_LIVE ^ address while live */
	uint64_t bytes;
};

/*
 * The first chunk, for most programs the only one; the others are mapped at once when it is full.
 */
static TM_ALIGNED(4096) char first[CHUNK_BYTES];
static _Atomic(char *) others;

static char *chunk_start(uint32_t i)
{
	char *more = atomic_load_explicit(&others, memory_order_acquire);

	if (i == 0)
		return first;
	return more == NULL ? NULL : more + (i - 1) * (size_t)CHUNK_BYTES;
}

/* Map the other chunks. Any thread, any context: the loser of a race unmaps its own. */
static void map_others(void)
{
	char *none = NULL, *more;

	if (atomic_load_explicit(&others, memory_order_relaxed) != NULL)
		return;
	more = tm_mem_map((CHUNKS - 1) * (size_t)CHUNK_BYTES);
	if (more != NULL && !atomic_compare_exchange_strong(&others, &none, more))
		tm_mem_unmap_raw(more, (CHUNKS - 1) * (size_t)CHUNK_BYTES);
}

static struct {
	_Atomic uint32_t used;
	_Atomic uint32_t live; /* blocks; RESETTING while `used` goes back to 0 */
} chunk[CHUNKS];

static _Atomic uint32_t current;

static struct {
	_Atomic uintptr_t start; /* 0: unused, 1: being set up */
	size_t bytes;
} mapping[MAPPINGS];

static void *carve(uint32_t i, size_t bytes, size_t align)
{
	uint32_t need = (uint32_t)(bytes + align + sizeof(struct header));
	char *start = chunk_start(i);
	uint32_t at;

	if (start == NULL)
		return NULL;
	if ((atomic_fetch_add_explicit(&chunk[i].live, 1, memory_order_acquire) & RESETTING) != 0)
		goto busy;
	at = atomic_load_explicit(&chunk[i].used, memory_order_relaxed);
	do {
		if (at + need > CHUNK_BYTES)
			goto busy;
	} while (!atomic_compare_exchange_weak_explicit(
		&chunk[i].used, &at, at + need, memory_order_relaxed, memory_order_relaxed));
	uintptr_t p = ((uintptr_t)start + at + sizeof(struct header) + align - 1) & ~(align - 1);
	struct header *h = (struct header *)p - 1;

	__builtin_memset((void *)p, 0, bytes);
	h->bytes = bytes;
	h->magic = MAGIC_LIVE ^ p;
	return (void *)p;
busy:
	atomic_fetch_sub_explicit(&chunk[i].live, 1, memory_order_release);
	return NULL;
}

/* Reuse a chunk from its start if it has no live blocks. */
static void reset(uint32_t i)
{
	uint32_t none = 0;

	if (!atomic_compare_exchange_strong_explicit(&chunk[i].live, &none, RESETTING,
						     memory_order_acquire, memory_order_relaxed))
		return;
	atomic_store_explicit(&chunk[i].used, 0, memory_order_relaxed);
	atomic_fetch_sub_explicit(&chunk[i].live, RESETTING, memory_order_release);
}

void *tm_emergency_map(size_t bytes, size_t align)
{
	size_t total = (bytes + align + TM_PAGE_BYTES - 1) & ~(TM_PAGE_BYTES - 1);

	for (uint32_t i = 0; i < MAPPINGS; i++) {
		uintptr_t none = 0;

		if (!atomic_compare_exchange_strong(&mapping[i].start, &none, 1))
			continue;
		/* for alignments above a page the block starts inside the mapping */
		char *p = total < bytes ? NULL : tm_mem_map(total);
		if (p == NULL) {
			atomic_store(&mapping[i].start, 0);
			return NULL;
		}
		uintptr_t start = ((uintptr_t)p + align - 1) & ~(align - 1);
		mapping[i].bytes = bytes;
		atomic_store(&mapping[i].start, start);
		return (void *)start;
	}
	return NULL;
}

void *tm_emergency_alloc(size_t bytes, size_t align)
{
	if (align < 16)
		align = 16;
	if (bytes <= CHUNK_BLOCK_MAX && align <= CHUNK_BLOCK_MAX) {
		uint32_t from = atomic_load_explicit(&current, memory_order_relaxed);

		for (uint32_t k = 0; k < CHUNKS; k++) {
			uint32_t i = (from + k) % CHUNKS;
			void *p = carve(i, bytes, align);

			if (p == NULL) {
				reset(i);
				p = carve(i, bytes, align);
			}
			if (p == NULL && k == 0)
				map_others();
			if (p != NULL) {
				if (k != 0)
					atomic_store_explicit(&current, i, memory_order_relaxed);
				return p;
			}
		}
	}
	return tm_emergency_map(bytes, align);
}

/* The chunk that p lies in; CHUNKS: none. */
static uint32_t chunk_of(const void *p)
{
	char *more = atomic_load_explicit(&others, memory_order_acquire);
	uintptr_t offset = (uintptr_t)p - (uintptr_t)more;

	if ((uintptr_t)p - (uintptr_t)first < CHUNK_BYTES)
		return 0;
	if (more == NULL || offset >= (CHUNKS - 1) * (uintptr_t)CHUNK_BYTES)
		return CHUNKS;
	return (uint32_t)(offset / CHUNK_BYTES) + 1;
}

static uint32_t mapping_of(const void *p)
{
	uint32_t i = 0;

	while (i < MAPPINGS && atomic_load(&mapping[i].start) != (uintptr_t)p)
		i++;
	return i;
}

bool tm_emergency_owns(const void *p)
{
	return chunk_of(p) < CHUNKS || ((uintptr_t)p > 1 && mapping_of(p) < MAPPINGS);
}

static struct header *header_of(const void *p)
{
	struct header *h = (struct header *)(uintptr_t)p - 1;

	if ((uintptr_t)p % 16 != 0 ||
	    (uintptr_t)p < (uintptr_t)chunk_start(chunk_of(p)) + sizeof(*h) ||
	    h->magic != (MAGIC_LIVE ^ (uintptr_t)p))
		return NULL;
	return h;
}

size_t tm_emergency_bytes(const void *p)
{
	if (chunk_of(p) < CHUNKS) {
		const struct header *h = header_of(p);

		return h == NULL ? 0 : (size_t)h->bytes;
	}
	uint32_t i = mapping_of(p);
	return i < MAPPINGS ? mapping[i].bytes : 0;
}

bool tm_emergency_free(void *p)
{
	uint32_t i = chunk_of(p);

	if (i < CHUNKS) {
		struct header *h = header_of(p);

		if (h == NULL)
			return false;
		h->magic = 0;
		atomic_fetch_sub_explicit(&chunk[i].live, 1, memory_order_release);
		return true;
	}
	i = mapping_of(p);
	if (i == MAPPINGS)
		return false;
	uintptr_t start = (uintptr_t)p & ~(TM_PAGE_BYTES - 1);
	size_t bytes = mapping[i].bytes + ((uintptr_t)p - start);

	atomic_store(&mapping[i].start, 0);
	tm_mem_unmap_raw((void *)start, (bytes + TM_PAGE_BYTES - 1) & ~(TM_PAGE_BYTES - 1));
	return true;
}
