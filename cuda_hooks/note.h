/* SPDX-License-Identifier: MIT */
/*
 * note: the account of calls that are only passed on. Each takes the lock for a moment; the call of
 * the driver is over before.
 */
#ifndef TM_CUDA_NOTE_H
#define TM_CUDA_NOTE_H

#include "cuda_hooks/track.h"
#include "shim/base/tunables.h"

/* A block was obtained in the current context. */
void tm_note_add(enum tm_track_space space, uint64_t value, uint64_t bytes,
		 enum tm_ledger_gpu_kind kind);

/* One more reference: to a handle, or an opening of another process's memory. False: not known. */
bool tm_note_again(enum tm_track_space space, uint64_t value);

/*
 * A reference ends, mostly the only one. Said before the driver is asked, because another thread may be
 * given the same address as soon as it is free; tm_note_undo where the driver then refuses. False: it
 * was not known, nothing is to be undone.
 */
bool tm_note_release(enum tm_track_space space, uint64_t value, struct tm_track_block *ret_was);
void tm_note_undo(enum tm_track_space space, uint64_t value, const struct tm_track_block *was);

/* A handle's memory is mapped, which is a reference; a range is unmapped, which may be of several. */
void tm_note_map(uint64_t address, uint64_t bytes, uint64_t handle);
void tm_note_unmap(uint64_t address, uint64_t bytes);

/* [lock] The row of counters for a block of this context, from this thread's call site. */
uint32_t tm_note_row(uint16_t context, enum tm_ledger_gpu_kind kind, enum tm_tier tier);

/* In a forked child: rows are numbered anew. */
void tm_note_fork_child(void);

#endif
