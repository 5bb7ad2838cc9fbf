/* SPDX-License-Identifier: MIT */
#include "shim/early.h"

#include <stdatomic.h>

#define STEP ((size_t)16)

/* Precedes each block. Alignment may require a gap before a header. */
struct header {
	uint32_t size;  /* of the block, a multiple of STEP */
	uint32_t start; /* the area's fill mark before this block */
	uint64_t mark;
};

#define HEADER_MARK UINT64_C(0x7965726c62746d)

_Static_assert(sizeof(struct header) == STEP, "blocks stay aligned");
_Static_assert(TM_EARLY_BYTES <= UINT32_MAX, "offsets fit");

TM_ALIGNED(4096) unsigned char tm_early_area[TM_EARLY_BYTES];
static _Atomic uint32_t fill; /* offset of the first unused byte */

static struct header *header_of(const void *p)
{
	return (struct header *)((uintptr_t)p - sizeof(struct header));
}

void *tm_early_alloc(size_t align, size_t size)
{
	uintptr_t base = (uintptr_t)tm_early_area;
	uint32_t old = atomic_load_explicit(&fill, memory_order_relaxed);
	uintptr_t p;
	if (align < STEP)
		align = STEP;
	if (size > TM_EARLY_BYTES || align > TM_EARLY_BYTES)
		return NULL;
	size = size == 0 ? STEP : (size + STEP - 1) & ~(STEP - 1);
	do {
		p = (base + old + sizeof(struct header) + align - 1) & ~(align - 1);
		if (p - base + size > TM_EARLY_BYTES)
			return NULL;
	} while (!atomic_compare_exchange_weak_explicit(&fill, &old, (uint32_t)(p - base + size),
							memory_order_acq_rel,
							memory_order_relaxed));
	*header_of((void *)p) = (struct header){(uint32_t)size, old, HEADER_MARK};
	return (void *)p;
}

static bool is_block(const void *p)
{
	uintptr_t offset = (uintptr_t)p - (uintptr_t)tm_early_area;
	return offset >= STEP && offset < TM_EARLY_BYTES && offset % STEP == 0 &&
	       header_of(p)->mark == HEADER_MARK && header_of(p)->size <= TM_EARLY_BYTES - offset;
}

void tm_early_free(void *p)
{
	struct header h;
	uint32_t end;
	unsigned char *b = p;
	size_t i;
	if (!is_block(p))
		return;
	h = *header_of(p);
	end = (uint32_t)((uintptr_t)p - (uintptr_t)tm_early_area) + h.size;
	if (atomic_load_explicit(&fill, memory_order_relaxed) != end)
		return;
	/* clear before the mark moves: blocks must be zeroed */
	for (i = 0; i < h.size; i++)
		b[i] = 0;
	*header_of(p) = (struct header){0};
	if (!atomic_compare_exchange_strong_explicit(&fill, &end, h.start, memory_order_acq_rel,
						     memory_order_relaxed))
		*header_of(p) = h;
}

size_t tm_early_usable(const void *p)
{
	return is_block(p) ? header_of(p)->size : 0;
}

int tm_early_check(void)
{
	uint32_t end = atomic_load_explicit(&fill, memory_order_acquire), at = 0;
	while (at < end) {
		uint32_t next = at + (uint32_t)STEP;
		/* there may be a gap: the next header is the one whose `start` is this offset */
		while (next < end && !(is_block(tm_early_area + next) &&
				       header_of(tm_early_area + next)->start == at))
			next += (uint32_t)STEP;
		if (next >= end)
			return __LINE__;
		at = next + header_of(tm_early_area + next)->size;
	}
	return at == end ? 0 : __LINE__;
}
