/* SPDX-License-Identifier: MIT */
/*
 * ledger_areas: maps the ledger's file. The tables are one mapping. Rows, granule records and side
 * entries are mapped at their start and grown in place by mremap, so that no descriptor stays open
 * and no addresses are reserved in advance. Pages are populated before they are written: on a full
 * file system, or at the limit of the file, the library falls back to private memory with one
 * message instead of a SIGBUS.
 *
 * Called by ledger.c. One lock, rank LEDGER.
 */
#ifndef TM_LEDGER_AREAS_H
#define TM_LEDGER_AREAS_H

#include "shim/base/ledger_format.h"
#include "shim/heap/account.h"
#include "shim/os/msg.h"

/* Most chunks of side entries from before the ledger that are moved into it: 4 MiB. */
#define TM_LEDGER_CHUNKS 16u

struct tm_ledger_start {
	const char *path;
	uint64_t limit_bytes;
	enum tm_msg_level level; /* of the message that the file has no more space */
	uint32_t heaps;          /* existing heaps: the caller moves their rows */
	uint32_t chunks;         /* chunks of existing side entries to reserve space for */
	uintptr_t sides_at;      /* address of new side entries, >= tm_ledger_sides_begin() */
};

void tm_ledger_areas_init(void);
uintptr_t tm_ledger_sides_begin(void);

/* Determines the file system of the file. To be called before the other functions. */
void tm_ledger_look(int fd);
/*
 * Sets the advice for a mapping of the file: no core dump, and no more than single pages, since
 * most stay empty: no huge pages on tmpfs, and no 64 KiB read-ahead, which a disk's file system
 * would then write back.
 */
void tm_ledger_advise(void *at, size_t bytes);

/* Maps the file and publishes it by tm_ledger_header(). 0 or -errno. */
int tm_ledger_map(int fd, const struct tm_ledger_start *start);

/* Installs the account's hooks: heaps, spans and blocks created from now on are in the file. */
void tm_ledger_hook(void);

/* Populates pages that the caller has mapped, before writing. False: the file has no more space. */
bool tm_ledger_populate(void *at, size_t bytes);

/* Note that a heap's rows, or a chunk's side entries, are now in the file. */
void tm_ledger_heap_has_rows(uint32_t heap_index);
void tm_ledger_adopt_chunk(unsigned index, struct tm_side_chunk chunk);

/* The granule's record, populated; NULL: no space. */
struct tm_ledger_granule *tm_ledger_record(const struct tm_granule *head);

/*
 * In a forked child: replaces the rows of new heaps and the side entries by private zero pages and
 * unmaps the rest. Returns the end address of the side entries.
 */
uintptr_t tm_ledger_unmap_in_child(void);

/*
 * In a child that continues inside an allocation (fork.c): tm_ledger_keep_in_child replaces all
 * mappings in place by private zero pages; ledger_copy.c restores the contents from a copy of the
 * pieces that tm_ledger_each_piece visits: whole pages, limited to what is known to be populated.
 */
typedef void tm_ledger_piece_fn(void *at, size_t bytes, void *arg);
void tm_ledger_each_piece(tm_ledger_piece_fn *visit, void *arg);
void tm_ledger_keep_in_child(void);

#endif
