/* SPDX-License-Identifier: MIT */
/*
 * deep: TIERMALLOC_LEDGER=deep. Records in the ledger the birth time of each object in nanoseconds,
 * the lifetimes by site, and the number of slots of 4 to 64 KiB by exact size. For debugging
 * sessions rather than production: two clock reads and about 30 ns of memory accesses per
 * malloc/free pair.
 *
 * Birth times are stored in the order of the side entries (base/ledger_format.h). A window of the
 * file is mapped, by the ledger's path, when its first object is allocated; no descriptor stays
 * open. Births that cannot be stored are counted. Called by the wrappers of trace.c, from any
 * thread and any signal handler; an object's birth time may be accessed only by the object's
 * holder.
 */
#ifndef TM_DEEP_H
#define TM_DEEP_H

#include "shim/base/attrs.h"

void tm_deep_init(void);

/* Whether TIERMALLOC_LEDGER=deep is set. [const after boot] */
bool tm_deep_is_wanted(void);

/* Records the birth of an object just allocated. */
void tm_deep_born(const void *p);

/* What is known of an object that may be about to be freed. */
struct tm_deep_life {
	uint64_t *birth; /* its time in the ledger; NULL: no object, or nothing known */
	uint64_t born_ns;
	uint64_t key; /* site | height << 48; 0: none */
	size_t size;  /* of a slot of 4 to 64 KiB, else 0 */
};
struct tm_deep_life tm_deep_look(const void *p);

/* Before the free: clears the birth time, so that the slot's next object doesn't inherit it. */
void tm_deep_forget(const struct tm_deep_life *life);

/* After the free: counts the lifetime. life: the result of tm_deep_look before the free. */
void tm_deep_died(const struct tm_deep_life *life);

/* A ledger begins. */
void tm_deep_begin(void);

/* In a forked child: detaches from the parent's file. */
void tm_deep_fork_child(void);

#endif
