/* SPDX-License-Identifier: MIT */
/*
 * foreign: frees and reallocs of pointers that the engine did not allocate (H14, H20, H22).
 *
 * Such a pointer is early memory, a block of libc's malloc (some code reached libc directly), or an
 * error. Memory before the pointer is read only after the kernel has confirmed that its page is
 * readable. If it has the header of a libc chunk, the block goes to libc; otherwise the error is
 * counted, and ends the process only with TIERMALLOC_ON_ERROR=abort. Any thread, no lock held;
 * allocates nothing.
 */
#ifndef TM_FOREIGN_H
#define TM_FOREIGN_H

#include "shim/base/attrs.h"

struct tm_next;

enum tm_error_kind {
	TM_ERROR_FOREIGN,        /* no allocation function returned this address */
	TM_ERROR_INTERIOR,       /* pointer into the middle of a block */
	TM_ERROR_DOUBLE,         /* the block is already free */
	TM_ERROR_SIZE_MISMATCH,  /* sized delete with the wrong size: counted, never fatal */
	TM_ERROR_OVERRUN,        /* bytes next to the block were written */
	TM_ERROR_USE_AFTER_FREE, /* the block was written after it was freed */
	TM_ERROR_KINDS,
};

/* free, realloc and malloc_usable_size of such a pointer. tm_foreign_free keeps errno. */
void tm_foreign_free(void *p);
void *tm_foreign_realloc(void *p, size_t size);
size_t tm_foreign_usable(void *p);

/*
 * Counts an error. Prints one line for the first of each kind that a free detects. With
 * TIERMALLOC_ON_ERROR=abort prints any and does not return, except for TM_ERROR_SIZE_MISMATCH.
 */
void tm_error_count(enum tm_error_kind kind, const void *p);

/* Errors of this kind so far. */
uint64_t tm_error_total(enum tm_error_kind kind);

/* Number of libc blocks that were passed to libc's free. */
uint64_t tm_foreign_handed_back(void);

/* Looks libc's functions up (elf.h). Afterwards every pointer is set, unless there is no libc. */
void tm_foreign_resolve(struct tm_next *ret_next);

#endif
