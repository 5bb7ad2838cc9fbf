/* SPDX-License-Identifier: MIT */
/*
 * modules: which file was mapped where, and when, in the ledger's table of modules. An object is
 * noted when the first stack passes it, by what it says of itself in memory (program headers, build
 * id), never from a file. Its record stays when the object goes.
 *
 * One lock (rank SITES); the loader's list is never walked, so that nothing waits for the loader.
 * Callers hold a heap, or a signal handler could come back here.
 */
#ifndef TM_MODULES_H
#define TM_MODULES_H

#include "shim/unwind.h"

void tm_modules_init(void);

/* An address of a stack, in this object (tm_unwind_seen). */
void tm_modules_seen(uintptr_t pc, const struct tm_unwind_object *object);

/* Objects may have gone: those that are no longer there get the time of now. */
void tm_modules_sweep(void);

/* In a forked child: a table of its own follows. */
void tm_modules_fork_child(void);

/* The build id of the object that begins there, at most size bytes; its length, 0: it has none. */
uint32_t tm_modules_build_id(uintptr_t begin, uint8_t *id, size_t size);

#endif
