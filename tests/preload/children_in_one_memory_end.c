/* SPDX-License-Identifier: MIT */
/*
 * H47: a child that shares the memory but is a process of its own (clone with CLONE_VM, as sandboxes
 * and container tools make) frees enough for the helper, and returns: only its thread ends. With a
 * ledger somebody asked for the helper stays; were it a thread of the child's, the child would never
 * end. The parent gets it instead, at its own next free.
 * Failure: a parent that waits for ever, a parent without a helper.
 */
/* env: TIERMALLOC_DIR=ledgers */
#include "probe.h"
#include <sched.h>

static char stack[256 * KIB] __attribute__((aligned(16)));

static int work(void *arg)
{
	(void)arg;
	probe_churn(64);
	return 0;
}

int main(void)
{
	probe_limit();
	for (int i = 0; i < 3; i++) {
		pid_t pid = clone(work, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);

		probe_require(pid > 0, "no clone");
		probe_child_ok(pid, "child");
	}
	probe_churn(64);
	size_t rss = probe_wait_rss(getpid(), 40 * MIB);
	probe_require(rss <= 40 * MIB, "%zu MiB stay", rss / MIB);
	return 0;
}
