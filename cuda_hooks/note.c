/* SPDX-License-Identifier: MIT */
#include "cuda_hooks/note.h"

#include "cuda_hooks/caller.h"
#include "cuda_hooks/context.h"
#include "cuda_hooks/hooks.h"
#include "shim/ledger/ledger.h"
#include "shim/ledger/modules.h"
#include "shim/os/clock.h"
#include "shim/thread.h"

#define GUESSES 64u

/* [lock] Cache of rows: most blocks come from few sites. */
static struct guess {
	uint64_t site;
	uint64_t place; /* context and its life, kind, tier, in one word; 0: unused */
	uint32_t row;
} guesses[GUESSES];

static const struct tm_ledger_header *ledger_seen; /* [lock] */

/*
 * Records the module of a call site in the ledger: a site that only requests device memory appears
 * in no stack of the host's account. The heap is held, so that a signal handler which interrupts
 * this does not wait for the table's lock.
 */
static TM_COLD void note_module(uint64_t site)
{
	struct tm_unwind_object object;
	struct tm_thread_heap held;
	if (site <= 1 || !tm_unwind_object(site, &object))
		return;
	held = tm_thread_enter();
	if (held.hold != TM_THREAD_NONE)
		tm_modules_seen(site, &object);
	tm_thread_leave(held);
}

/* [lock] Moves the rows into the ledger once it exists; usually long before the first CUDA call. */
static TM_COLD void move_rows(void)
{
	struct tm_ledger_header *header = tm_ledger_header();
	struct tm_ledger_gpu *area;
	if (header == NULL)
		return;
	ledger_seen = header;
	area = tm_ledger_area(TM_LEDGER_GPU_AT, TM_LEDGER_GPU_ROWS * sizeof(*area));
	if (area != NULL)
		tm_track_move_rows(area, &header->gpu_rows, &header->gpu_rows_lost);
	for (uint32_t i = 0; area != NULL && i < header->gpu_rows; i++)
		note_module(area[i].site);
}

static TM_NOINLINE uint32_t find_row(struct guess *g, uint64_t site, uint64_t place,
				     uint16_t context)
{
	const struct tm_context *c = tm_context_at(context);
	struct tm_track_where where = {
		.site = site,
		.context = (uintptr_t)c->handle,
		.device = (uint16_t)(c->device < 0 ? 0 : c->device),
		.kind = (uint16_t)(place >> 8 & 0xff),
		.tier = (uint32_t)(place & 0xff),
	};
	uint32_t row = tm_track_row_of(&where);
	if (row != 0 && ledger_seen != NULL)
		note_module(site);
	/* Row 0 is never cached: each block without a row of its own must be counted as lost. */
	if (row != 0)
		*g = (struct guess){site, place, row};
	return row;
}

uint32_t tm_note_row(uint16_t context, enum tm_ledger_gpu_kind kind, enum tm_tier tier)
{
	const struct tm_hooks_thread *t = &tm_hooks_thread;
	uint64_t site = t->site;
	/* A context's number is reused for another life. */
	uint64_t place = tm_context_at(context)->place | UINT32_C(1) << 31 | (uint32_t)kind << 8 |
			 (uint32_t)tier;
	struct guess *g;
	if (TM_UNLIKELY(tm_caller_runtimes != 0) && t->tagged == 0)
		site = tm_caller_find(site, t->frame);
	g = &guesses[(site ^ site >> 6 ^ kind ^ (unsigned)tier << 3) % GUESSES];
	if (TM_UNLIKELY(tm_ledger_header() != ledger_seen))
		move_rows();
	return TM_LIKELY(g->site == site && g->place == place) ? g->row
							       : find_row(g, site, place, context);
}

void tm_note_fork_child(void)
{
	__builtin_memset(guesses, 0, sizeof(guesses));
}

void tm_note_add(enum tm_track_space space, uint64_t value, uint64_t bytes,
		 enum tm_ledger_gpu_kind kind)
{
	tm_cu_context handle = tm_context_current();
	uint32_t now_ms = (uint32_t)tm_clock_ms(), row;
	struct tm_track_block *b;
	uint16_t context;
	tm_hooks_lock();
	context = tm_context_of(handle);
	row = tm_note_row(context, kind, TM_TIER_ALL);
	b = tm_track_place(space, value);
	if (TM_LIKELY(b != NULL)) {
		b->bytes = bytes;
		b->owner = 0;
		b->row = row;
		b->born_ms = now_ms;
		b->refs = 1;
		b->context = context;
		b->kind = (uint8_t)kind;
		b->flags = 0;
		b->site_class = 0;
		tm_track_count(b);
	}
	tm_hooks_unlock();
}

bool tm_note_again(enum tm_track_space space, uint64_t value)
{
	struct tm_track_block *block;
	tm_hooks_lock();
	block = tm_track_find(space, value);
	if (block != NULL)
		block->refs++;
	tm_hooks_unlock();
	return block != NULL;
}

static bool release(enum tm_track_space space, uint64_t value, struct tm_track_block *ret_was)
{
	struct tm_track_block *block = tm_track_find(space, value);
	if (block == NULL)
		return false;
	*ret_was = *block;
	if (--block->refs == 0)
		tm_track_drop(block);
	return true;
}

bool tm_note_release(enum tm_track_space space, uint64_t value, struct tm_track_block *ret_was)
{
	bool known;
	tm_hooks_lock();
	known = release(space, value, ret_was);
	tm_hooks_unlock();
	return known;
}

void tm_note_undo(enum tm_track_space space, uint64_t value, const struct tm_track_block *was)
{
	struct tm_track_block *block;
	tm_hooks_lock();
	block = tm_track_find(space, value);
	if (block != NULL)
		block->refs++;
	else
		tm_track_restore(was);
	tm_hooks_unlock();
}

void tm_note_map(uint64_t address, uint64_t bytes, uint64_t handle)
{
	struct tm_track_block block = {.bytes = bytes, .owner = handle, .kind = TM_LEDGER_GPU_VMM};
	struct tm_track_block *of;
	tm_hooks_lock();
	of = tm_track_find(TM_TRACK_HANDLE, handle);
	if (of != NULL) {
		of->refs++;
		tm_track_add(TM_TRACK_MAPPING, address, &block);
	}
	tm_hooks_unlock();
}

void tm_note_unmap(uint64_t address, uint64_t bytes)
{
	uint64_t end = address + bytes;
	struct tm_track_block block, handle;
	tm_hooks_lock();
	while (address < end && tm_track_remove(TM_TRACK_MAPPING, address, &block)) {
		release(TM_TRACK_HANDLE, block.owner, &handle);
		address += block.bytes;
	}
	tm_hooks_unlock();
}
