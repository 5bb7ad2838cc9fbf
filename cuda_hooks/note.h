/* SPDX-License-Identifier: MIT */
/*
 * note: accounts for calls that are passed on to the driver. Each function takes tm_hooks_lock
 * briefly (unless marked [lock]), never during the driver's call.
 */
#ifndef TM_CUDA_NOTE_H
#define TM_CUDA_NOTE_H

#include "cuda_hooks/track.h"
#include "shim/base/tunables.h"

/* Records a block that was allocated in the current context. */
void tm_note_add(enum tm_track_space space, uint64_t value, uint64_t bytes,
		 enum tm_ledger_gpu_kind kind);

/*
 * Adds a reference: to a handle, or by opening another process's memory again. False: the block is
 * not known.
 */
bool tm_note_again(enum tm_track_space space, uint64_t value);

/*
 * Drops a reference, usually the only one. To be called before the driver's release, because
 * another thread may get the same address as soon as it is free; call tm_note_undo if the driver
 * then refuses. False: the block was not known, and there is nothing to undo.
 */
bool tm_note_release(enum tm_track_space space, uint64_t value, struct tm_track_block *ret_was);
void tm_note_undo(enum tm_track_space space, uint64_t value, const struct tm_track_block *was);

/* A mapping counts as a reference to the handle. An unmapped range may cover several mappings. */
void tm_note_map(uint64_t address, uint64_t bytes, uint64_t handle);
void tm_note_unmap(uint64_t address, uint64_t bytes);

/* [lock] The row of counters for a block of this context, requested at this thread's call site. */
uint32_t tm_note_row(uint16_t context, enum tm_ledger_gpu_kind kind, enum tm_tier tier);

/* In a forked child: row numbers start anew. */
void tm_note_fork_child(void);

#endif
