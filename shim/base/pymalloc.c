/* SPDX-License-Identifier: MIT */
#include "shim/base/pymalloc.h"

#include "shim/base/bits.h"

#define PAGE ((uint64_t)4 << 10)
#define SMALL ((size_t)4 << 10)
#define LARGE ((size_t)16 << 10)
#define OBJECT_MAX 512u
#define HEADER sizeof(struct tm_pymalloc_header)

static bool fits(const struct tm_pymalloc_header *h, uint64_t at, size_t pool)
{
	/* Objects are multiples of 16 bytes; of 8 in early versions. */
	size_t step = h->size_class + 1u, size;

	if (h->size_class >= OBJECT_MAX / 8 || h->last_offset >= pool)
		return false;
	size = pool - h->last_offset;
	if ((size != step * 16 && size != step * 8) || size > OBJECT_MAX)
		return false;
	if (h->next_offset < HEADER + size || h->next_offset > pool ||
	    (h->next_offset - HEADER) % size != 0 || (uint32_t)h->count > (pool - HEADER) / size)
		return false;
	return h->free == 0 || (h->free >= at + HEADER && h->free < at + pool &&
				(h->free - at - HEADER) % size == 0);
}

size_t tm_pymalloc_pool(const struct tm_pymalloc_header *h, uint64_t at)
{
	if (at % LARGE == 0 && fits(h, at, LARGE))
		return LARGE;
	return at % SMALL == 0 && fits(h, at, SMALL) ? SMALL : 0;
}

static void add(const struct tm_pymalloc_room *room, uint64_t window, uint64_t at, size_t pool,
		struct tm_pymalloc_sum *sum)
{
	size_t first = (size_t)((at - window) / PAGE);

	sum->pools_bytes += pool;
	for (size_t i = first; i < first + pool / PAGE && i < TM_PYMALLOC_PAGES; i++)
		sum->resident_bytes += (room->resident[i] & 1) * PAGE;
}

/* Pages that may begin a pool: every so many bytes, but those of a pool that was seen. */
static size_t candidates(struct tm_pymalloc_room *room, uint64_t window, size_t pages, size_t step)
{
	size_t count = 0;

	for (size_t i = 0; i < pages; i++)
		if ((window + i * PAGE) % step == 0 && (room->resident[i] & 1) != 0)
			room->at[count++] = window + i * PAGE;
	return count;
}

static void look_at(const struct tm_pymalloc_source *source, uint64_t window, size_t pages,
		    struct tm_pymalloc_sum *sum)
{
	struct tm_pymalloc_room *room = source->room;
	size_t count, small = 0;

	if (!source->look(window, pages, room->resident, source->arg))
		return;
	count = candidates(room, window, pages, LARGE);
	source->read(room->at, count, room->header, source->arg);
	for (size_t i = 0; i < count; i++) {
		size_t pool = tm_pymalloc_pool(&room->header[i], room->at[i]);

		small += pool == SMALL;
		if (pool == LARGE)
			add(room, window, room->at[i], pool, sum);
	}
	/* Pools of one size only: an interpreter has one. */
	if (small == 0)
		return;
	count = candidates(room, window, pages, SMALL);
	source->read(room->at, count, room->header, source->arg);
	for (size_t i = 0; i < count; i++)
		if (tm_pymalloc_pool(&room->header[i], room->at[i]) == SMALL)
			add(room, window, room->at[i], SMALL, sum);
}

void tm_pymalloc_look(const struct tm_pymalloc_source *source, uint64_t begin, uint64_t end,
		      struct tm_pymalloc_sum *sum)
{
	/* Windows end where a large pool may begin. */
	while (begin < end) {
		uint64_t to = tm_bits_align_down(begin, LARGE) + TM_PYMALLOC_PAGES * PAGE;

		to = to < end ? to : end;
		look_at(source, begin, (size_t)((to - begin) / PAGE), sum);
		begin = to;
	}
}
