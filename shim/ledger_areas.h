/* SPDX-License-Identifier: MIT */
/*
 * ledger_areas: the ledger's file as memory. Tables are one mapping; rows, records of granules and
 * side entries are mapped from their begin and grow where they are, so that no descriptor stays open
 * and no address is taken before it is needed. Everything is populated before it is written: a full
 * file system, or a used-up share, means private memory from there on, one line, and no signal.
 *
 * For ledger.c, which says when. One lock, rank LEDGER.
 */
#ifndef TM_LEDGER_AREAS_H
#define TM_LEDGER_AREAS_H

#include "shim/base/ledger_format.h"
#include "shim/heap/account.h"
#include "shim/os/msg.h"

/* Chunks of side entries from before the ledger that may be moved into it: 4 MiB. */
#define TM_LEDGER_CHUNKS 16u

struct tm_ledger_start {
	const char *path;
	uint64_t limit_bytes;
	enum tm_msg_level level; /* of a message that there is no more room */
	uint32_t heaps;          /* that exist already: their rows are moved by the caller */
	uint32_t chunks;         /* places kept for chunks */
	uintptr_t sides_at;      /* where new side entries lie; from tm_ledger_sides_begin on */
};

void tm_ledger_areas_init(void);
uintptr_t tm_ledger_sides_begin(void);

/* First of all: what file system it is on. */
void tm_ledger_look(int fd);
/*
 * What the file is mapped by is no part of core dumps, and each page is had by itself, since most stay
 * empty: no huge ones of a tmpfs, and not the 64 KiB that a disk's file system reads ahead and then writes.
 */
void tm_ledger_advise(void *at, size_t bytes);

/* Maps the file and has tm_ledger_header() say so. 0 or -errno. */
int tm_ledger_map(int fd, const struct tm_ledger_start *start);

/* The account hears of it: what begins from here on is in the file. */
void tm_ledger_hook(void);

/* A page of the file that the caller has mapped will be written. */
bool tm_ledger_populate(void *at, size_t bytes);

/* A heap's rows, a chunk's entries are in the file now. */
void tm_ledger_heap_has_rows(uint32_t heap_index);
void tm_ledger_adopt_chunk(unsigned index, struct tm_side_chunk chunk);

/* The record of a granule, or NULL where it cannot be had. */
struct tm_ledger_granule *tm_ledger_record(const struct tm_granule *head);

/*
 * In a forked child: rows of new heaps and entries become private zeros, the rest goes. Returns the
 * first address behind the entries.
 */
uintptr_t tm_ledger_unmap_in_child(void);

/*
 * In a child that goes on inside the library (fork.c): everything becomes private zeros and stays where
 * it is; what it was comes back from a copy of these pieces. Whole pages, populated as far as is known.
 */
typedef void tm_ledger_piece_fn(void *at, size_t bytes, void *arg);
void tm_ledger_each_piece(tm_ledger_piece_fn *visit, void *arg);
void tm_ledger_keep_in_child(void);

#endif
