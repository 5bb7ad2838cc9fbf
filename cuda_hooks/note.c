/* SPDX-License-Identifier: MIT */
#include "cuda_hooks/note.h"

#include "cuda_hooks/context.h"
#include "cuda_hooks/hooks.h"
#include "shim/ledger.h"
#include "shim/os/clock.h"

/* [lock] The ledger may begin at any time, mostly long before the first call of CUDA. */
static void move_rows(void)
{
	static const struct tm_ledger_header *seen;
	struct tm_ledger_header *header = tm_ledger_header();
	struct tm_ledger_gpu *area;
	if (TM_LIKELY(header == seen) || header == NULL)
		return;
	seen = header;
	area = tm_ledger_area(TM_LEDGER_GPU_AT, TM_LEDGER_GPU_ROWS * sizeof(*area));
	if (area != NULL)
		tm_track_move_rows(area, &header->gpu_rows, &header->gpu_rows_lost);
}

struct tm_track_where tm_note_where(uint16_t context, enum tm_ledger_gpu_kind kind, uint32_t tier)
{
	const struct tm_context *c = tm_context_at(context);
	move_rows();
	return (struct tm_track_where){
		.site = tm_hooks_thread.site,
		.context = (uintptr_t)c->handle,
		.device = (uint16_t)(c->device < 0 ? 0 : c->device),
		.kind = (uint16_t)kind,
		.tier = tier,
	};
}

void tm_note_add(enum tm_track_space space, uint64_t value, uint64_t bytes,
		 enum tm_ledger_gpu_kind kind)
{
	tm_cu_context handle = tm_context_current();
	struct tm_track_block block = {.bytes = bytes, .refs = 1};
	struct tm_track_where where;
	tm_hooks_lock();
	block.context = tm_context_of(handle);
	where = tm_note_where(block.context, kind, 0);
	tm_track_add(space, value, &block, &where);
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
	struct tm_track_block block = {.bytes = bytes, .owner = handle};
	struct tm_track_where where = {.kind = TM_LEDGER_GPU_VMM};
	struct tm_track_block *of;
	tm_hooks_lock();
	of = tm_track_find(TM_TRACK_HANDLE, handle);
	if (of != NULL) {
		of->refs++;
		tm_track_add(TM_TRACK_MAPPING, address, &block, &where);
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
