/* SPDX-License-Identifier: MIT */
/*
 * modules: the ledger's table of modules: which object was mapped where and when. An object is
 * recorded when it first appears in a captured stack, from its image in memory (program headers,
 * build id), never from its file. The record stays after the object is unloaded.
 *
 * One lock (rank SITES). Never walks the loader's list, so it cannot wait for the loader's lock.
 * Callers hold a heap, which keeps a signal handler from re-entering.
 */
#ifndef TM_MODULES_H
#define TM_MODULES_H

#include "shim/unwind/unwind.h"

void tm_modules_init(void);

/* Callback of the unwinder (tm_unwind_seen): pc, an address in a stack, lies in `object`. */
void tm_modules_seen(uintptr_t pc, const struct tm_unwind_object *object);

/* After an unload: sets unloaded_ms of the objects that are no longer mapped. */
void tm_modules_sweep(void);

/* In a forked child: starts an empty table, for the child's own ledger. */
void tm_modules_fork_child(void);

/* Copies the build id of the object mapped at `begin`, at most size bytes. Its length; 0: none. */
uint32_t tm_modules_build_id(uintptr_t begin, uint8_t *id, size_t size);

#endif
