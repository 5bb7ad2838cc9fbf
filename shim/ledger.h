/* SPDX-License-Identifier: MIT */
/*
 * ledger: the account in a file that survives the process (base/ledger_format.h).
 *
 * Made at boot where TIERMALLOC_DIR names a directory and TIERMALLOC_TARGET lets the program through:
 * DIR/PID-STARTTIME.tm, 0600. The file is sparse and mapped as a whole (5.4 GiB of address
 * space), so that no descriptor stays open. Every page is populated before it is used: where the file
 * system is full, private memory is used from there on and one line says so; nothing ever faults. A forked child counts on in private memory: it must not write into its parent's file.
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

/* The tier that a granule's record has; 0: none, or no record. */
unsigned tm_ledger_tier(size_t granule);

/* Around fork: heaps are copied to the child after all. */
void tm_ledger_fork_prepare(void);
void tm_ledger_fork_parent(void);

/* In a child: the shared pages are replaced by private ones. */
void tm_ledger_fork_child(void);

/* The process ends by itself. */
void tm_ledger_end(void);

#endif
