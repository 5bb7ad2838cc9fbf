/* SPDX-License-Identifier: MIT */
/*
 * store: hooks of the account: where its memory comes from, and who is told of changes. Without a
 * ledger the memory is private and nobody is told; shim/ledger/ledger.c installs itself here at boot.
 *
 * All functions may be called by any thread that holds the heap in question; they take no lock of
 * the heap's. A member that is NULL is not called.
 */
#ifndef TM_HEAP_STORE_H
#define TM_HEAP_STORE_H

#include "shim/heap/granule.h"

struct tm_heap;
struct tm_row;

/* What the fast path knows of its call site. */
struct tm_site {
	uintptr_t return_address;
	uintptr_t frame; /* canonical frame address: the stack pointer before the call */
};

struct tm_account_store {
	/* Map the rows of a heap at this address. 0 or -errno. */
	int (*map_rows)(uintptr_t at, uint32_t heap_index);
	/* Rows up to this byte are about to be written. False: no room, make no more rows. */
	bool (*need_rows)(uintptr_t rows, size_t bytes);
	/* A chunk for side entries, of *bytes bytes or fewer (set). NULL: use private memory. */
	void *(*side_chunk)(size_t *bytes);
	/*
	 * A span began, was carved further or moved to another heap; ended; a block began; ended.
	 */
	void (*span)(const struct tm_granule *head);
	void (*gone)(const struct tm_granule *head);
	void (*block)(const struct tm_granule *head);
	/* A row was made for a new site, inside an allocation of the heap's owner. */
	void (*site)(const struct tm_heap *h, const struct tm_row *row, struct tm_site site);
	/* The slow path counted an allocation; a sampler may walk its stack. */
	void (*sample)(const struct tm_heap *h, const struct tm_row *row, size_t bytes,
		       struct tm_site site);
};

/* [const after boot, but for a forked child that becomes private] */
extern TM_HIDDEN struct tm_account_store tm_account_store;

#endif
