/* SPDX-License-Identifier: MIT */
/*
 * ledger: keeps the account in a mapped file that survives the process (base/ledger_format.h).
 *
 * If requested (TIERMALLOC_DIR, or a report that is made from it) the file is created at boot, in
 * DIR or in /dev/shm/tiermalloc-UID, and kept. Otherwise it is created once the process holds more
 * than 4 MiB, and deleted at a clean exit. What was counted before, in private memory, is then
 * moved into the file: the side entries if only one thread has a heap by then, else the spans so
 * far stay outside the ledger (at most those 4 MiB); the rows of each heap are moved by its owner.
 *
 * A forked child must not write into its parent's file. It counts in private memory and gets a file
 * of its own at its next slow path (if requested), or once it holds more than 4 MiB a second later.
 *
 * Children of _Fork and raw clone run no fork handler. They find their heaps wiped
 * (MADV_WIPEONFORK) and thus enter a slow path before they write to anything shared with the parent
 * (thread.c).
 */
#ifndef TM_LEDGER_H
#define TM_LEDGER_H

#include "shim/base/attrs.h"

/* At boot, before the first heap. No effect if no ledger is wanted or the file can't be made. */
void tm_ledger_init(void);

bool tm_ledger_is_on(void);

struct tm_ledger_header;

/* NULL: no ledger. Write its fields as ledger_format.h specifies. */
struct tm_ledger_header *tm_ledger_header(void);

/*
 * The mapped bytes at `offset` of the tables (below TM_LEDGER_TABLES_BYTES), populated for writing.
 * NULL: no ledger, or no space. Takes the ledger's lock only for a page's first use.
 */
void *tm_ledger_area(uint64_t offset, size_t bytes);

/* Fork handlers: suspend MADV_WIPEONFORK, so that the child gets copies of the heaps. */
void tm_ledger_fork_prepare(void);
void tm_ledger_fork_parent(void);

/* In a child: replaces the pages shared with the parent's file by private ones. */
enum tm_ledger_child { TM_LEDGER_CHILD, TM_LEDGER_CHILD_RAW };
void tm_ledger_fork_child(enum tm_ledger_child child);

/*
 * The same for a child that continues inside an allocation (fork.h): the copy made in the parent
 * (ledger_copy.h) replaces the file's pages. The child keeps counting there, but no file shows it.
 */
void tm_ledger_fork_inside(void);

/* At a clean end of the process; the second form is for _exit and never waits. */
void tm_ledger_end(void);
void tm_ledger_end_now(void);

/* Offset of a side entry in the file's area of side entries; false: it is not in the file. */
bool tm_ledger_side_offset(const void *side, uint64_t *ret_offset);
/* Bytes of that area. */
uint64_t tm_ledger_sides_bytes(void);

/* Whether the user requested a ledger, so that the file is kept. */
bool tm_ledger_is_asked_for(void);

/* Path of the file; NULL: no ledger. */
const char *tm_ledger_path(void);
/* For messages: why this process has no ledger. */
const char *tm_ledger_why_none(void);

#endif
