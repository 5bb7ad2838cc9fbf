/* SPDX-License-Identifier: MIT */
/*
 * numa: on which nodes new memory is placed. Blocks of the persistent tier are interleaved over the nodes
 * that have memory, so that one loader thread doesn't put all weights beside itself; the rest follows
 * the kernel's own policy, the node of whoever writes a page first. A policy that the program or
 * numactl gave the process is left alone unless the user asks for another. With one node nothing is
 * done at all, nor read but one file.
 *
 * Policies are set where memory is mapped, before its first touch, under the lock of its part; they
 * outlive give-back. Memory that changes its part changes its policy, but pages never move.
 */
#ifndef TM_HEAP_NUMA_H
#define TM_HEAP_NUMA_H

#include "shim/base/tunables.h"
#include "shim/heap/zone.h"

#define TM_NUMA_NODES_MAX 1024u
#define TM_NUMA_WORDS (TM_NUMA_NODES_MAX / 64)

struct tm_numa_set {
	uint64_t word[TM_NUMA_WORDS];
};

enum tm_numa_policy {
	TM_NUMA_AS_IS, /* the process's own */
	TM_NUMA_ON_ALL,
	TM_NUMA_NEAR,
	TM_NUMA_ON_SET,
};

/* The kernel; tests put another one here. 0 or -errno. */
struct tm_numa_os {
	int (*bind)(void *addr, size_t bytes, int mode, const struct tm_numa_set *set);
	long (*read)(const char *path, char *buf, size_t size);
	bool (*may_ask)(void);                       /* no filter punishes unusual calls */
	int (*process_policy)(void);                 /* MPOL_..., or -errno */
	int (*allowed)(struct tm_numa_set *ret_set); /* of this process, by its cpuset */
};
extern TM_HIDDEN struct tm_numa_os tm_numa_os;

/* At boot. nodes: a list such as 0,2-3, of TM_NUMA_NODES. */
void tm_numa_configure(enum tm_numa numa, const char *nodes);

/* [part lock] Pages were mapped for a part, or anew; nothing of them was touched. */
void tm_numa_fresh(enum tm_part part, uint32_t page, size_t pages);

/* Units go from one part to another. */
void tm_numa_relabel(enum tm_part from, enum tm_part to, uint32_t page, size_t pages);

/* A block of its own: for rules. False: nothing was done, since there is one node or the kernel refused. */
bool tm_numa_place(void *addr, size_t bytes, enum tm_numa_policy policy, uint32_t node);

/* Calls the kernel refused. */
uint64_t tm_numa_refused(void);

#endif
