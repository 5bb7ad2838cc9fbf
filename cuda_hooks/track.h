/* SPDX-License-Identifier: MIT */
/*
 * track: what the program holds of device and pinned memory. One record per block, found by its
 * address or handle; counters by context, device, kind, site and tier, in memory that is the ledger's
 * once there is one, so that they survive a kill.
 *
 * All functions want tm_hooks_lock, but for tm_track_total. Records are found by their first address
 * only; tm_track_around walks.
 */
#ifndef TM_CUDA_TRACK_H
#define TM_CUDA_TRACK_H

#include "shim/base/attrs.h"
#include "shim/base/ledger_format.h"

/* Addresses, handles and array pointers are different names that may have the same value. */
enum tm_track_space {
	TM_TRACK_ADDRESS = 1,
	TM_TRACK_REGISTERED, /* host pages that the program pinned itself */
	TM_TRACK_HANDLE,     /* of cuMemCreate */
	TM_TRACK_MAPPING,    /* of a handle */
	TM_TRACK_ARRAY,
};

#define TM_TRACK_EXPORTED                                                                          \
	1u /* somebody has a handle to it, or looked at its identity: never reused */

struct tm_track_block {
	uint64_t key;     /* [private] space and value; 0: none */
	uint64_t bytes;   /* as asked for */
	uint64_t owner;   /* pool's record (a pointer), mapping's handle; 0 */
	uint32_t row;     /* counters */
	uint32_t born_ms; /* wraps */
	uint32_t refs;    /* handles: references and mappings */
	uint16_t context; /* index of context.h */
	uint8_t kind;     /* enum tm_ledger_gpu_kind */
	uint8_t flags;
	uint32_t site_class; /* of sites.h; 0: none */
	uint32_t unused;
};

struct tm_track_where {
	uint64_t site;
	uint64_t context; /* handle */
	uint16_t device;
	uint16_t kind;
	uint32_t tier;
};

/* The row of counters for a place; it stays valid in this process. 0: for what has no row of its own. */
uint32_t tm_track_row_of(const struct tm_track_where *where);

/*
 * Notes a block, whose row (but for mappings) and kind are given. False: no memory for the record, it is
 * counted as lost. An old record of the same name is replaced: its block is gone, or the name could not
 * have been given out again.
 */
bool tm_track_add(enum tm_track_space space, uint64_t value, struct tm_track_block *block);

/*
 * The same in two steps, for who fills in the record where it will lie: every field but the key, nothing else in
 * between. NULL: no memory, there is nothing to fill in nor to count.
 */
struct tm_track_block *tm_track_place(enum tm_track_space space, uint64_t value);
void tm_track_count(const struct tm_track_block *block);

/* NULL: not known. Valid until the next add or remove. */
struct tm_track_block *tm_track_find(enum tm_track_space space, uint64_t value);

/* The block that holds an address. Walks everything. */
struct tm_track_block *tm_track_around(uint64_t address, uint64_t *ret_start);

/* False: not known. ret_block may be NULL. */
bool tm_track_remove(enum tm_track_space space, uint64_t value, struct tm_track_block *ret_block);

/* The same of one that was found. */
void tm_track_drop(struct tm_track_block *block);

/* A removed block is there after all: nothing was allocated anew. */
void tm_track_restore(const struct tm_track_block *block);

/* Everything of a context is gone. "each" is told of the blocks that a pool owns; may be NULL. */
void tm_track_forget_context(uint16_t context, void (*each)(struct tm_track_block *block));

#define TM_TRACK_KINDS 8u
#define TM_TRACK_DEVICES 32u

struct tm_track_total {
	uint64_t objects[TM_TRACK_KINDS];
	uint64_t live_bytes[TM_TRACK_KINDS];
	uint64_t peak_bytes[TM_TRACK_KINDS];
};

/* Figures of one device; pinned host memory counts for the device whose context was current. */
void tm_track_total(unsigned device, struct tm_track_total *ret);
unsigned tm_track_devices(void);         /* highest number seen + 1 */
uint64_t tm_track_live(unsigned device); /* bytes of device memory proper */

uint64_t tm_track_lost(void);

/* The ledger has begun: rows live in its area from now on, their number and the lost ones are told there. */
void tm_track_move_rows(struct tm_ledger_gpu *area, uint32_t *count, uint64_t *lost_count);

/*
 * Host memory that a device sees: pinned, registered, managed. Without the lock, in an image of the process
 * that was made at any moment: some ranges may be missing or stand for ones that are gone.
 */
void tm_track_each_visible(void (*see)(uintptr_t start, uintptr_t end));

/* Each block that counts, by its row. */
void tm_track_each(void (*see)(uint32_t row, uint32_t born_ms, void *arg), void *arg);

/* In a forked child: the records and the rows are the parent's. */
void tm_track_fork_child(void);

/* 0 or the source line of the invariant that does not hold. */
int tm_track_check(void);

#endif
