/* SPDX-License-Identifier: MIT */
/*
 * deep: TIERMALLOC_LEDGER=deep: when each object was born, to the nanosecond, how long those of each
 * site lived, and how many slots of 4 to 64 KiB of each exact size there are. All of it in the ledger.
 * For hunts, not for every day: two clock reads and some 30 ns of memory a pair.
 *
 * Births lie beside the entries' order (base/ledger_format.h), in windows that are mapped when their
 * first object comes, by the ledger's name: no descriptor is kept. What cannot be kept is counted.
 * Called by the wrappers of trace.c, in signal handlers too. Any thread; an object's birth belongs to whoever holds the object.
 */
#ifndef TM_DEEP_H
#define TM_DEEP_H

#include "shim/base/attrs.h"

void tm_deep_init(void);

/* Whether the user asked for it. [const after boot] */
bool tm_deep_is_wanted(void);

/* An object was given out. */
void tm_deep_born(const void *p);

/* What is known of one that may be about to die. */
struct tm_deep_life {
	uint64_t *birth; /* NULL: no object, or nothing is known */
	uint64_t born_ns;
	uint64_t key; /* site | height << 48; 0: none */
	size_t size;  /* of a slot of 4 to 64 KiB, else 0 */
};
struct tm_deep_life tm_deep_look(const void *p);

/* It is about to be freed, by its holder: who gets the place next finds no birth of another's. */
void tm_deep_forget(const struct tm_deep_life *life);

/* It died: tm_deep_look's answer from before. */
void tm_deep_died(const struct tm_deep_life *life);

/* A ledger begins. */
void tm_deep_begin(void);

/* In a forked child: nothing of the parent's file is written. */
void tm_deep_fork_child(void);

#endif
