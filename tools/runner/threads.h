/* SPDX-License-Identifier: MIT */
/*
 * A group of worker threads that run one function together and then sleep.
 *
 * Waiting is always blocking (condition variables): two groups on one core must not spin against
 * each other. The calling thread is member 0. One thread at a time may call yi_workers_run.
 */
#ifndef YI_THREADS_H
#define YI_THREADS_H

#include <stdint.h>

struct yi_workers;

/* `number` of `count` members; every member gets the same argument. */
typedef void yi_work_fn(void *arg, uint32_t number, uint32_t count);

/* count >= 1 members, count - 1 threads.  NULL with errno: no memory or no thread. */
struct yi_workers *yi_workers_create(uint32_t count);
void yi_workers_free(struct yi_workers *workers);
uint32_t yi_workers_count(const struct yi_workers *workers);
/* Returns when all members have returned from fn. */
void yi_workers_run(struct yi_workers *workers, yi_work_fn *fn, void *arg);

#endif
