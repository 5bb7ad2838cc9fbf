/* SPDX-License-Identifier: MIT */
/*
 * replay_arena: simulates arenas without memory: 64 KiB blocks per thread, in lines of 256 bytes. A
 * request goes to the bump pointer of the newest block that has room, or into the first hole that
 * is large enough; freeing the newest allocation moves the bump pointer back; an empty block is
 * released, except the last one.
 */
#ifndef TM_TOOLS_REPLAY_ARENA_H
#define TM_TOOLS_REPLAY_ARENA_H

#include "shim/base/attrs.h"

#define TM_ARENA_BLOCK_BYTES 65536u
#define TM_ARENA_LINE_BYTES 256u
#define TM_ARENA_MAX_BYTES (TM_ARENA_BLOCK_BYTES / 2)

struct tm_arena_block;

struct tm_arena_place {
	struct tm_arena_block *block; /* NULL: not in an arena */
	uint16_t line, lines;
};

struct tm_arena {
	struct tm_arena_block *newest; /* owned, a list */
	uint64_t held_bytes, live_bytes;
};

/* Places a request; false without memory. */
bool tm_arena_take(struct tm_arena *arena, uint64_t bytes, struct tm_arena_place *ret);
void tm_arena_give(struct tm_arena *arena, const struct tm_arena_place *place, uint64_t bytes);
void tm_arena_clear(struct tm_arena *arena);

#endif
