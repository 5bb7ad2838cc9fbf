/* SPDX-License-Identifier: MIT */
#include "shim/guard_pages.h"

#include <stdatomic.h>
#include <sys/mman.h>

#include "shim/base/bits.h"
#include "shim/os/mem.h"

#define PLACES 256u
/* Address space of a slot; its last part is the guard page. */
#define PLACE_BYTES ((size_t)128 << 10)
#define DATA_BYTES ((size_t)64 << 10)

enum { PLACE_FREE, PLACE_CHANGES, PLACE_USED, PLACE_SEALED };

struct place {
	_Atomic uint32_t state;
	uint32_t size;
	char *block;
};

static struct {
	char *base; /* [const after boot] NULL: none */
	_Atomic uint32_t next;
	struct place place[PLACES];
} region;

bool tm_guard_pages_init(void)
{
	char *base = tm_mem_map(PLACES * PLACE_BYTES);

	if (base == NULL || tm_mem_protect(base, PLACES * PLACE_BYTES, PROT_NONE) != 0)
		return false;
	region.base = base;
	return true;
}

bool tm_guard_pages_own(const void *p)
{
	return region.base != NULL && (uintptr_t)p - (uintptr_t)region.base < PLACES * PLACE_BYTES;
}

static char *data_of(uint32_t number)
{
	return region.base + number * PLACE_BYTES;
}

static struct place *place_of(const void *p)
{
	return &region.place[(size_t)((const char *)p - region.base) / PLACE_BYTES];
}

void *tm_guard_pages_take(size_t size, size_t align)
{
	uint32_t number = atomic_fetch_add_explicit(&region.next, 1, memory_order_relaxed) % PLACES;
	struct place *place = &region.place[number];
	uint32_t state = atomic_load_explicit(&place->state, memory_order_relaxed);

	/* a block of 0 bytes would begin in the guard page, and realloc reads from its block */
	size = tm_bits_max(size, 1);
	if (region.base == NULL || size > TM_GUARD_PAGES_MAX || align > TM_PAGE_BYTES ||
	    (state != PLACE_FREE && state != PLACE_SEALED) ||
	    !atomic_compare_exchange_strong(&place->state, &state, PLACE_CHANGES))
		return NULL;
	if (tm_mem_protect(data_of(number), DATA_BYTES, PROT_READ | PROT_WRITE) != 0) {
		atomic_store(&place->state, state);
		return NULL;
	}
	place->size = (uint32_t)size;
	place->block = data_of(number) + ((DATA_BYTES - size) & ~(align - 1));
	atomic_store_explicit(&place->state, PLACE_USED, memory_order_release);
	return place->block;
}

size_t tm_guard_pages_bytes(const void *p)
{
	struct place *place = place_of(p);

	return atomic_load_explicit(&place->state, memory_order_acquire) == PLACE_USED &&
			       place->block == p
		       ? place->size
		       : 0;
}

bool tm_guard_pages_give(void *p)
{
	struct place *place = place_of(p);
	uint32_t used = PLACE_USED;
	char *data = data_of((uint32_t)(place - region.place));

	if (tm_guard_pages_bytes(p) == 0 ||
	    !atomic_compare_exchange_strong(&place->state, &used, PLACE_CHANGES))
		return false;
	/* drops the contents, so that the next block is zeroed, and makes the pages inaccessible */
	if (tm_mem_map_fixed(data, DATA_BYTES, PROT_NONE) == 0)
		atomic_store_explicit(&place->state, PLACE_SEALED, memory_order_release);
	return true;
}
