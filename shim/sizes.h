/* SPDX-License-Identifier: MIT */
/*
 * sizes: how many blocks of each exact size there are and were at once, in the ledger: what fixed
 * pools are cut from. Of blocks of whole pages (above 64 KiB); slots have classes.
 */
#ifndef TM_SIZES_H
#define TM_SIZES_H

#include "shim/base/attrs.h"

void tm_sizes_init(void);

/* A block begins, ends. Any thread; the lock of new sizes ranks SITES. */
void tm_sizes_add(uint64_t size, unsigned tier);
void tm_sizes_remove(uint64_t size);

/* In a forked child: a table of its own follows. */
void tm_sizes_fork_child(void);

#endif
