/* SPDX-License-Identifier: MIT */
/* replay_arena: see replay_arena.h. */
#include "tools/policy/replay_arena.h"

#include <stdlib.h>
#include <string.h>

#define LINES (TM_ARENA_BLOCK_BYTES / TM_ARENA_LINE_BYTES)

struct tm_arena_block {
	struct tm_arena_block *older, *newer;
	uint16_t bump; /* first line not handed out yet */
	uint16_t live; /* lines in use */
	uint8_t used[LINES];
};

/* Index of the first run of `lines` free lines below the bump pointer; LINES: none. */
static unsigned find_hole(const struct tm_arena_block *b, unsigned lines)
{
	unsigned run = 0;

	if (b->bump - b->live < (int)lines)
		return LINES;
	for (unsigned i = 0; i < b->bump; i++) {
		run = b->used[i] ? 0 : run + 1;
		if (run == lines)
			return i + 1 - lines;
	}
	return LINES;
}

static bool take_in(struct tm_arena_block *b, unsigned lines, struct tm_arena_place *ret)
{
	unsigned at = b->bump;

	if (b->bump + lines <= LINES) {
		b->bump = (uint16_t)(b->bump + lines);
	} else {
		at = find_hole(b, lines);
		if (at == LINES)
			return false;
	}
	memset(b->used + at, 1, lines);
	b->live = (uint16_t)(b->live + lines);
	*ret = (struct tm_arena_place){b, (uint16_t)at, (uint16_t)lines};
	return true;
}

bool tm_arena_take(struct tm_arena *arena, uint64_t bytes, struct tm_arena_place *ret)
{
	unsigned lines = (unsigned)((bytes + TM_ARENA_LINE_BYTES - 1) / TM_ARENA_LINE_BYTES);
	struct tm_arena_block *b;

	arena->live_bytes += bytes;
	for (b = arena->newest; b != NULL; b = b->older) {
		if (take_in(b, lines, ret))
			return true;
	}
	b = calloc(1, sizeof(*b));
	if (b == NULL)
		return false;
	b->older = arena->newest;
	if (b->older)
		b->older->newer = b;
	arena->newest = b;
	arena->held_bytes += TM_ARENA_BLOCK_BYTES;
	return take_in(b, lines, ret);
}

static void drop(struct tm_arena *arena, struct tm_arena_block *b)
{
	if (b->newer)
		b->newer->older = b->older;
	else
		arena->newest = b->older;
	if (b->older)
		b->older->newer = b->newer;
	arena->held_bytes -= TM_ARENA_BLOCK_BYTES;
	free(b);
}

void tm_arena_give(struct tm_arena *arena, const struct tm_arena_place *place, uint64_t bytes)
{
	struct tm_arena_block *b = place->block;

	memset(b->used + place->line, 0, place->lines);
	b->live = (uint16_t)(b->live - place->lines);
	arena->live_bytes -= bytes;
	if (b->live == 0)
		b->bump = 0;
	while (b->bump > 0 && !b->used[b->bump - 1])
		b->bump--;
	if (b->live == 0 && (b->older || b->newer))
		drop(arena, b);
}

void tm_arena_clear(struct tm_arena *arena)
{
	while (arena->newest)
		drop(arena, arena->newest);
	*arena = (struct tm_arena){0};
}
