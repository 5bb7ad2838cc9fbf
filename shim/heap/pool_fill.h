/* SPDX-License-Identifier: MIT */
/* pool_fill: takes memory for fixed pools and makes it resident, in pieces. See pool.h. */
#ifndef TM_HEAP_POOL_FILL_H
#define TM_HEAP_POOL_FILL_H

#include "shim/heap/pool.h"

/* Take memory for the slots that the pool lacks, as far as there is; they wait. [lock] */
void tm_pool_fill_extend(struct tm_pool *pool);

/* A request takes the first slot that waits, as it is. [lock] */
void tm_pool_fill_overtake(struct tm_pool *pool);

/* Make a small piece resident, for a request. [lock] */
void tm_pool_fill_some(struct tm_pool *pool);

/*
 * For the helper: make a piece of some pool resident, at most a unit. False: all are. Takes the pool's
 * lock, but not while the kernel works.
 */
bool tm_pool_fill_piece(void);

/* Make memory resident that nobody uses. */
void tm_pool_fill_resident(char *at, size_t bytes);

#endif
