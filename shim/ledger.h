/* SPDX-License-Identifier: MIT */
/*
 * ledger: the account in a file that survives the process (base/ledger_format.h).
 *
 * Asked for (TIERMALLOC_DIR, or a report made from it), it begins at boot, in DIR or in
 * /dev/shm/tiermalloc-UID, and stays. Unasked it begins when the process has come to hold more than
 * 4 MiB, and goes at a clean exit. What was counted before, in private memory, is moved into it: the
 * entries if only one thread has a heap by then, else their spans stay outside (at most those 4 MiB);
 * rows of each heap by its owner.
 *
 * A forked child must not write into its parent's file: it counts on in private memory until it comes
 * to a slow path (asked for), or holds more than 4 MiB a second later, and gets its own.
 *
 * Children that no fork handler sees (_Fork, raw clone) find their heaps wiped (MADV_WIPEONFORK), so
 * that they come to a slow path before they write anything shared (thread.c).
 */
#ifndef TM_LEDGER_H
#define TM_LEDGER_H

#include "shim/base/attrs.h"

/* At boot, before the first heap. Does nothing where no ledger is wanted or none can be had. */
void tm_ledger_init(void);

bool tm_ledger_is_on(void);

struct tm_ledger_header;

/* NULL: there is none. Its fields are written as ledger_format.h says. */
struct tm_ledger_header *tm_ledger_header(void);

/*
 * Memory of the tables (below TM_LEDGER_TABLES_BYTES), ready to be written. NULL: no ledger, or no
 * room. Takes the ledger's lock only where a page is used for the first time.
 */
void *tm_ledger_area(uint64_t offset, size_t bytes);

/* Around fork: heaps are copied to the child after all. */
void tm_ledger_fork_prepare(void);
void tm_ledger_fork_parent(void);

/* In a child: the shared pages are replaced by private ones. */
enum tm_ledger_child { TM_LEDGER_CHILD, TM_LEDGER_CHILD_RAW };
void tm_ledger_fork_child(enum tm_ledger_child child);

/*
 * The same of a child that goes on inside the library: what was copied in its parent (ledger_copy.h)
 * takes the file's place, and the account goes on there, for nobody.
 */
void tm_ledger_fork_inside(void);

/* The process ends by itself; the second form is for _exit, where nothing may wait. */
void tm_ledger_end(void);
void tm_ledger_end_now(void);

/* Where an entry lies in the file's area of sides; false: it is not in the file. */
bool tm_ledger_side_offset(const void *side, uint64_t *ret_offset);
/* How long that area is. */
uint64_t tm_ledger_sides_bytes(void);

/* Whether the user asked for a ledger. */
bool tm_ledger_is_asked_for(void);

/* The file's name, NULL: there is none. */
const char *tm_ledger_path(void);
/* Of a process without one: why, in words. */
const char *tm_ledger_why_none(void);

#endif
