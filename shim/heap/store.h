/* SPDX-License-Identifier: MIT */
/*
 * store: where the account's memory comes from, and who is told what it means. By default it is
 * private memory and nobody is told. A ledger (shim/ledger.c) puts itself here at boot.
 *
 * All functions may be called by any thread that holds the heap in question; they take no lock of
 * the heap's. A member that is NULL is not called.
 */
#ifndef TM_HEAP_STORE_H
#define TM_HEAP_STORE_H

#include "shim/heap/granule.h"

struct tm_heap;
struct tm_row;

/* What the fast path knows of its caller. */
struct tm_site {
	uintptr_t return_address;
	uintptr_t frame; /* canonical frame address: the stack pointer before the call */
};

struct tm_account_store {
	/* Map the rows of a heap at this address. 0 or -errno: then they are private. */
	int (*map_rows)(uintptr_t at, uint32_t heap_index);
	/* Rows up to this byte will be written. False: no more rows. */
	bool (*need_rows)(uintptr_t rows, size_t bytes);
	/* A chunk for side entries, of so many bytes or fewer; or NULL: then it is private. */
	void *(*side_chunk)(size_t *bytes);
	/* A span began, was carved further or changed its heap; ended; a block began, ended. */
	void (*span)(const struct tm_granule *head);
	void (*gone)(const struct tm_granule *head);
	void (*block)(const struct tm_granule *head);
	/* A row was made for a new site, in the midst of an allocation of its owner's. */
	void (*site)(const struct tm_heap *h, const struct tm_row *row, struct tm_site site);
	/* The slow path counted an allocation: whoever samples may look at its stack. */
	void (*sample)(const struct tm_heap *h, const struct tm_row *row, size_t bytes,
		       struct tm_site site);
};

/* [const after boot, but for a forked child that becomes private] */
extern TM_HIDDEN struct tm_account_store tm_account_store;

#endif
