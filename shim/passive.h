/* SPDX-License-Identifier: MIT */
/*
 * passive: what the exported functions do where the engine does not serve, or not alone. Called by
 * boot alone, while tm_root is writable.
 */
#ifndef TM_PASSIVE_H
#define TM_PASSIVE_H

#include "shim/boot.h"

/*
 * libc serves, or the next library that defines malloc: ops become its functions. What was handed
 * out before from early memory is still known.
 */
void tm_passive_begin(enum tm_passive_reason reason);

/* Why, in words; "" where the engine serves. */
const char *tm_passive_reason(void);

/*
 * Where somebody in front of us defines malloc, take from ops what would give blocks that the other's
 * free does not know; else nothing.
 */
void tm_passive_behind(struct tm_ops *ops);

#endif
