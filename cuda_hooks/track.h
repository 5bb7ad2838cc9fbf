/* SPDX-License-Identifier: MIT */
/*
 * track: the program's live device and pinned memory. One record per block, found by its address or
 * handle; counters by context, device, kind, site and tier, which live in the ledger once there is
 * one, so that they survive a kill.
 *
 * All functions need tm_hooks_lock, except tm_track_total and tm_track_each_visible. Records are
 * found by their start address only; tm_track_around walks the table.
 */
#ifndef TM_CUDA_TRACK_H
#define TM_CUDA_TRACK_H

#include "shim/base/attrs.h"
#include "shim/base/ledger_format.h"

/* Name spaces: an address, a handle and an array pointer may have the same value. */
enum tm_track_space {
	TM_TRACK_ADDRESS = 1,
	TM_TRACK_REGISTERED, /* host pages that the program pinned itself */
	TM_TRACK_HANDLE,     /* of cuMemCreate */
	TM_TRACK_MAPPING,    /* an address where a handle's memory is mapped */
	TM_TRACK_ARRAY,
};

/* The program has a handle to it or learned its identity: it is never reused. */
#define TM_TRACK_EXPORTED 1u

struct tm_track_block {
	uint64_t key;     /* [private] space and value; 0: none */
	uint64_t bytes;   /* as asked for */
	uint64_t owner;   /* address of the pool's record, or a mapping's handle; 0: none */
	uint32_t row;     /* index of its row of counters */
	uint32_t born_ms; /* wraps */
	uint32_t refs;    /* of handles: references and mappings */
	uint16_t context; /* index of context.h */
	uint8_t kind;     /* enum tm_ledger_gpu_kind */
	uint8_t flags;
	uint32_t site_class; /* class number of sites.h; 0: none */
	uint32_t unused;
};

struct tm_track_where {
	uint64_t site;
	uint64_t context; /* handle */
	uint16_t device;
	uint16_t kind;
	uint32_t tier;
};

/*
 * The row of counters for a place, valid for the life of this process. 0: the row that collects
 * what has no row of its own.
 */
uint32_t tm_track_row_of(const struct tm_track_where *where);

/*
 * Adds a block's record; the caller has filled in row (except for mappings) and kind. False: no
 * memory for the record, and the block is counted as lost. An old record with the same name is
 * replaced: its block must be gone, or the name could not have been given out again.
 */
bool tm_track_add(enum tm_track_space space, uint64_t value, struct tm_track_block *block);

/*
 * The same in two steps, to fill in the record in place: tm_track_place, then every field but the
 * key, with no other call in between, then tm_track_count. NULL: no memory, and nothing to fill in
 * or count.
 */
struct tm_track_block *tm_track_place(enum tm_track_space space, uint64_t value);
void tm_track_count(const struct tm_track_block *block);

/* NULL: not known. The pointer is valid until the next add or remove. */
struct tm_track_block *tm_track_find(enum tm_track_space space, uint64_t value);

/* The block that contains an address, or NULL. Walks the whole table. */
struct tm_track_block *tm_track_around(uint64_t address, uint64_t *ret_start);

/* Removes a record. False: not known. ret_block may be NULL. */
bool tm_track_remove(enum tm_track_space space, uint64_t value, struct tm_track_block *ret_block);

/* Removes a record that tm_track_find returned. */
void tm_track_drop(struct tm_track_block *block);

/*
 * Adds a removed record again, after the driver refused to free the block: no allocation is
 * counted.
 */
void tm_track_restore(const struct tm_track_block *block);

/*
 * Removes all records of a context that has ended. "each", if not NULL, is called for blocks that a
 * pool owns.
 */
void tm_track_forget_context(uint16_t context, void (*each)(struct tm_track_block *block));

#define TM_TRACK_KINDS 8u
#define TM_TRACK_DEVICES 32u

struct tm_track_total {
	uint64_t objects[TM_TRACK_KINDS];
	uint64_t live_bytes[TM_TRACK_KINDS];
	uint64_t peak_bytes[TM_TRACK_KINDS];
};

/*
 * Totals of one device. Pinned host memory counts for the device whose context was current. Takes
 * no lock.
 */
void tm_track_total(unsigned device, struct tm_track_total *ret);
unsigned tm_track_devices(void);         /* highest device number seen, plus 1 */
uint64_t tm_track_live(unsigned device); /* live bytes of device memory proper */

/* Number of blocks that could not be recorded for want of memory. */
uint64_t tm_track_lost(void);

/*
 * Moves the rows into the ledger's area; from now on their number and the number of lost blocks are
 * kept there, too.
 */
void tm_track_move_rows(struct tm_ledger_gpu *area, uint32_t *count, uint64_t *lost_count);

/*
 * Calls `see` for each range of host memory visible to a device: pinned, registered, managed. Runs
 * without the lock, in a copy of the process made at an arbitrary moment: ranges may be missing or
 * stale.
 */
void tm_track_each_visible(void (*see)(uintptr_t start, uintptr_t end));

/* Calls `see` for each block that counts, with its row. */
void tm_track_each(void (*see)(uint32_t row, uint32_t born_ms, void *arg), void *arg);

/* In a forked child: forgets the records and rows, which are the parent's. */
void tm_track_fork_child(void);

/* Returns 0, or the source line of the invariant that is broken. */
int tm_track_check(void);

#endif
