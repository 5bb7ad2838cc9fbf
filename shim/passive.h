/* SPDX-License-Identifier: MIT */
/*
 * passive: targets of the exported functions where the engine serves nothing, or shares the process
 * with another allocator. Called by boot only, while tm_root is writable.
 */
#ifndef TM_PASSIVE_H
#define TM_PASSIVE_H

#include "shim/boot.h"

/*
 * Makes libc, or the next library that defines malloc, serve everything: points ops to its
 * functions. Blocks from early memory are still recognised.
 */
void tm_passive_begin(enum tm_passive_reason reason);

/* The reason for messages; "" if the engine serves. */
const char *tm_passive_reason(void);

/*
 * If a library in front of this one defines malloc, forwards those entries of ops that would return
 * blocks which that library's free does not know. Otherwise no effect.
 */
void tm_passive_behind(struct tm_ops *ops);

#endif
