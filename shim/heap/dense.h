/* SPDX-License-Identifier: MIT */
/*
 * dense: whether blocks get huge pages. A huge page under memory that a program reserves and hardly
 * touches makes 2 MiB of every touched byte: an engine with 70 MiB touched of 456 MiB held 309
 * (H58). So blocks start with small pages, and it is looked at how full the first ones were when they
 * are freed. Where they were, all blocks get huge pages from then on, those of before at their next
 * life. Blocks of 32 MiB and more that were not asked for as zeros are weights and caches: they get
 * huge pages at once.
 *
 * Takes no lock; any thread. A look is one system call for each of the first blocks only, and is not
 * taken under a system call filter (H68).
 */
#ifndef TM_HEAP_DENSE_H
#define TM_HEAP_DENSE_H

#include "shim/base/attrs.h"
#include "shim/heap/large.h"

/* Whether new memory for blocks is to be huge. */
bool tm_dense_is_huge(void);

/* A block begins; true: it has small pages, and tm_dense_died must hear of its end. */
bool tm_dense_born(void *p, size_t pages, enum tm_fill fill);

/* It ends, before its memory is given back. */
void tm_dense_died(void *p, size_t pages);

#endif
