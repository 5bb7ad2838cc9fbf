/* SPDX-License-Identifier: MIT */
/*
 * numa: chooses the nodes on which new memory is placed. Blocks of the persistent tier are
 * interleaved over the nodes that have memory, so that a single loader thread doesn't put all
 * weights on its own node. Other memory follows the kernel's default, the node of the thread that
 * writes a page first. A policy that the program or numactl gave the process is left alone unless
 * the user asks for another. On a machine with one node only one file is read and nothing is done.
 *
 * Policies are set where memory is mapped, before its first touch, under the lock of its part; they
 * stay when the memory is purged. Memory that moves to another part gets that part's policy, but
 * resident pages are not moved.
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
	TM_NUMA_AS_IS, /* the process's own policy */
	TM_NUMA_ON_ALL,
	TM_NUMA_NEAR,
	TM_NUMA_ON_SET,
};

/* The kernel; tests put a fake one here. 0 or -errno. */
struct tm_numa_os {
	int (*bind)(void *addr, size_t bytes, int mode, const struct tm_numa_set *set);
	long (*read)(const char *path, char *buf, size_t size);
	bool (*may_ask)(void);                       /* no filter punishes unusual system calls */
	int (*process_policy)(void);                 /* MPOL_..., or -errno */
	int (*allowed)(struct tm_numa_set *ret_set); /* nodes that the process's cpuset allows */
};
extern TM_HIDDEN struct tm_numa_os tm_numa_os;

/* At boot. nodes: a list such as 0,2-3, of TM_NUMA_NODES. */
void tm_numa_configure(enum tm_numa numa, const char *nodes);

/* [part lock] Pages were mapped for a part, or mapped anew, and are untouched: set their policy. */
void tm_numa_fresh(enum tm_part part, uint32_t page, size_t pages);

/* Units move from one part to another: set the new part's policy. */
void tm_numa_relabel(enum tm_part from, enum tm_part to, uint32_t page, size_t pages);

/*
 * Set the policy of one block, for a rule. False: nothing was done, since there is one node or the
 * kernel refused.
 */
bool tm_numa_place(void *addr, size_t bytes, enum tm_numa_policy policy, uint32_t node);

/* How many calls the kernel refused. */
uint64_t tm_numa_refused(void);

#endif
