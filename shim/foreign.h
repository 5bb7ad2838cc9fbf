/* SPDX-License-Identifier: MIT */
/*
 * foreign: pointers that the engine did not hand out (H14, H20, H22).
 *
 * Such a pointer is early memory, a block of libc's own malloc (which somebody reached past us), or
 * a mistake. Nothing in front of it is read before the kernel has confirmed that the page can be
 * read. A block that carries libc's marks is handed to libc; a mistake is counted, and ends the
 * process only under TIERMALLOC_ON_ERROR=abort. Any thread, off every lock; allocates nothing.
 */
#ifndef TM_FOREIGN_H
#define TM_FOREIGN_H

#include "shim/base/attrs.h"

struct tm_next;

enum tm_error_kind {
	TM_ERROR_FOREIGN,        /* no allocation function gave this address */
	TM_ERROR_INTERIOR,       /* it lies inside a block */
	TM_ERROR_DOUBLE,         /* the block is free */
	TM_ERROR_SIZE_MISMATCH,  /* sized delete with another size: counted, never fatal */
	TM_ERROR_OVERRUN,        /* bytes next to the block were written */
	TM_ERROR_USE_AFTER_FREE, /* the block was written after its free */
	TM_ERROR_KINDS,
};

/* errno is kept by these three where the call is free's. */
void tm_foreign_free(void *p);
void *tm_foreign_realloc(void *p, size_t size);
size_t tm_foreign_usable(void *p);

/*
 * Counts a wrong use. The first of a kind that a free finds is told in one line; with
 * TIERMALLOC_ON_ERROR=abort each is, and the function does not return.
 */
void tm_error_count(enum tm_error_kind kind, const void *p);

/* How often so far. */
uint64_t tm_error_total(enum tm_error_kind kind);

/* Blocks of libc's own malloc that were handed back to it. */
uint64_t tm_foreign_handed_back(void);

/* libc's functions, by the loader's tables; every pointer is set or the program has no libc. */
void tm_foreign_resolve(struct tm_next *ret_next);

#endif
