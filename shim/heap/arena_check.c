/* SPDX-License-Identifier: MIT */
/* arena_check: checks the invariants of arenas (arena.h), and restores them in a fork's child. */
#include "shim/heap/account.h"
#include "shim/heap/arena.h"
#include "shim/heap/span.h"

static void entry_is_free(const struct tm_granule *g, unsigned line)
{
	*(tm_entry8 *)tm_span_entry(g, line) = UINT64_MAX;
}

/* Mark a list's objects free. Its thread's last stores may be missing: then the rest is dropped. */
static void list_is_free(const struct tm_heap *h, struct tm_slot **link)
{
	for (; *link != NULL; link = &(*link)->next) {
		const struct tm_granule *g = tm_zone_granule(*link);

		if (!tm_zone_contains(*link) ||
		    (tm_granule_owner(g) & ~TM_OWNER_TAINTED) != ((uintptr_t)h | TM_OWNER_ARENA) ||
		    tm_arena_block_of(*link)->klass[tm_arena_line_of(*link)] == 0) {
			*link = NULL;
			return;
		}
		entry_is_free(g, tm_arena_line_of(*link));
	}
}

static void block_is_free(const struct tm_arena_block *b)
{
	for (unsigned line = TM_ARENA_FIRST; line < TM_ARENA_LINES; line++)
		if (b->klass[line] == 0 || (b->used[line / 64] >> line % 64 & 1) == 0)
			entry_is_free(b->granule, line);
}

TM_AT_START_CODE void tm_arena_fork_child(struct tm_heap *h, enum tm_arena_entries entries)
{
	struct tm_arena_block *prev = NULL;

	h->arena_blocks = 0;
	h->arena_current = NULL;
	h->arena_rover = NULL;
	h->arena_aged = NULL;
	h->census_block = NULL;
	for (struct tm_arena_block *b = h->arena_first; b != NULL; prev = b, b = b->next) {
		b->prev = prev;
		h->arena_blocks++;
		if (entries == TM_ARENA_ENTRIES_LOST)
			block_is_free(b);
	}
	if (entries != TM_ARENA_ENTRIES_LOST || h->arena_first == NULL)
		return;
	for (unsigned klass = TM_SMALL_CLASSES; klass < TM_CLASSES; klass++)
		list_is_free(h, &h->arena[klass]);
	list_is_free(h, &h->list[TM_ARENA_CLASS]);
}

static int check_block(const struct tm_heap *h, const struct tm_arena_block *b)
{
	uint64_t used[TM_ARENA_LINES / 64] = {1, 0, 0, 0};
	const struct tm_granule *g = b->granule;

	if ((g->owner & ~TM_OWNER_TAINTED) != ((uintptr_t)h | TM_OWNER_ARENA) || !tm_arena_is(g) ||
	    g->parked != b)
		return __LINE__;
	for (unsigned i = TM_ARENA_FIRST; i < TM_ARENA_LINES;) {
		unsigned n = b->klass[i] == 0 ? 0 : tm_arena_lines(b->klass[i]);

		if (n == 0) {
			if (!tm_span_entry_is_free(g, i))
				return __LINE__;
			i++;
			continue;
		}
		if (i + n > TM_ARENA_LINES)
			return __LINE__;
		for (unsigned k = 1; k < n; k++)
			if (b->klass[i + k] != 0)
				return __LINE__;
		for (unsigned end = i + n; i < end; i++)
			used[i / 64] |= UINT64_C(1) << i % 64;
	}
	for (unsigned i = 0; i < TM_ARENA_LINES / 64; i++)
		if (used[i] != b->used[i])
			return __LINE__;
	return 0;
}

/* Check a list of freed objects of a class; 0: of any class. */
static int check_list(const struct tm_slot *s, unsigned klass)
{
	for (; s != NULL; s = s->next) {
		unsigned have = tm_arena_block_of(s)->klass[tm_arena_line_of(s)];

		if (!tm_arena_is(tm_zone_granule(s)) || have == 0 ||
		    (klass != 0 && have != klass) ||
		    !tm_span_entry_is_free(tm_zone_granule(s), tm_arena_line_of(s)))
			return __LINE__;
	}
	return 0;
}

int tm_arena_check(const struct tm_heap *h)
{
	for (const struct tm_arena_block *b = h->arena_first; b != NULL; b = b->next) {
		int rc = check_block(h, b);

		if (rc != 0)
			return rc;
		if (b->next != NULL && b->next->prev != b)
			return __LINE__;
	}
	for (unsigned klass = TM_SMALL_CLASSES; klass < TM_CLASSES; klass++)
		if (check_list(h->arena[klass], klass) != 0)
			return __LINE__;
	return check_list(h->list[TM_ARENA_CLASS], 0);
}
