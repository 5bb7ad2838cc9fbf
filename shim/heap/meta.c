/* SPDX-License-Identifier: MIT */
#include "shim/heap/meta.h"

#include "shim/base/bits.h"
#include "shim/heap/zone.h"
#include "shim/os/lock.h"
#include "shim/os/mem.h"

/* Only touched pages become resident, so a chunk costs mostly address space. */
#define CHUNK_BYTES ((size_t)256 << 10)
#define SCANTY_CHUNK_BYTES ((size_t)32 << 10)
#define LARGE_BYTES (CHUNK_BYTES / 2)
#define GRAIN ((size_t)16)
#define CLASSES 17 /* 16, 32, ... 1 MiB: more than LARGE_BYTES */

struct piece {
	struct piece *next;
};

static struct {
	struct tm_lock lock;
	bool ready;
	char *at; /* free part of the newest chunk */
	char *end;
	struct piece *freed[CLASSES]; /* free pieces by power of two */
	size_t mapped;
	size_t used;
} meta = {.lock = TM_LOCK_INIT(TM_RANK_META)};

/* Pieces have sizes of powers of two, so that each fits every request of its class. */
static size_t piece_bytes(size_t bytes, size_t align)
{
	size_t least = tm_bits_max(tm_bits_max(bytes, align), GRAIN);

	return (size_t)1 << tm_bits_log2_up(least);
}

static unsigned int class_of(size_t piece)
{
	return tm_bits_log2(piece / GRAIN);
}

static void *bump(size_t piece, size_t align)
{
	char *p = (char *)tm_bits_align_up((uintptr_t)meta.at, align);

	if (meta.at == NULL || p + piece > meta.end) {
		size_t bytes =
			tm_zone_is_scanty() ? tm_bits_max(piece, SCANTY_CHUNK_BYTES) : CHUNK_BYTES;
		char *chunk = tm_mem_map(bytes);

		if (chunk == NULL)
			return NULL;
		meta.mapped += bytes;
		meta.end = chunk + bytes;
		p = chunk;
	}
	meta.at = p + piece;
	return p;
}

static TM_AT_START_CODE void lock_meta(void)
{
	if (tm_lock_acquire(&meta.lock) == TM_LOCK_STOLEN) {
		/* lists may be half changed: their pieces are lost to this process */
		for (int i = 0; i < CLASSES; i++)
			meta.freed[i] = NULL;
		meta.at = NULL;
	}
	if (!meta.ready) {
		meta.ready = true;
		tm_lock_register(&meta.lock);
	}
}

TM_AT_START_CODE void tm_meta_init(void)
{
	lock_meta();
	tm_lock_release(&meta.lock);
}

static void *alloc_large(size_t bytes)
{
	size_t mapped = tm_bits_align_up(bytes, (size_t)64 << 10);
	void *p = tm_mem_map(mapped);

	if (p == NULL)
		return NULL;
	lock_meta();
	meta.mapped += mapped;
	meta.used += bytes;
	tm_lock_release(&meta.lock);
	return p;
}

void *tm_meta_alloc(size_t bytes, size_t align)
{
	size_t piece;
	struct piece *p;
	unsigned int class;

	if (bytes > LARGE_BYTES)
		return alloc_large(bytes);
	piece = piece_bytes(bytes, align);
	class = class_of(piece);
	lock_meta();
	p = meta.freed[class];
	if (p != NULL) {
		meta.freed[class] = p->next;
		meta.used += piece;
		tm_lock_release(&meta.lock);
		__builtin_memset(p, 0, piece);
		return p;
	}
	p = bump(piece, tm_bits_min(piece, TM_PAGE_BYTES));
	if (p != NULL)
		meta.used += piece;
	tm_lock_release(&meta.lock);
	return p;
}

void tm_meta_free(void *p, size_t bytes, size_t align)
{
	struct piece *freed = p;
	size_t piece;

	if (p == NULL)
		return;
	if (bytes > LARGE_BYTES) {
		size_t mapped = tm_bits_align_up(bytes, (size_t)64 << 10);

		if (tm_mem_unmap_raw(p, mapped) != 0)
			return;
		lock_meta();
		meta.mapped -= mapped;
		meta.used -= bytes;
		tm_lock_release(&meta.lock);
		return;
	}
	piece = piece_bytes(bytes, align);
	lock_meta();
	freed->next = meta.freed[class_of(piece)];
	meta.freed[class_of(piece)] = freed;
	meta.used -= piece;
	tm_lock_release(&meta.lock);
}

void tm_meta_stats(size_t *ret_mapped, size_t *ret_used)
{
	lock_meta();
	*ret_mapped = meta.mapped;
	*ret_used = meta.used;
	tm_lock_release(&meta.lock);
}
