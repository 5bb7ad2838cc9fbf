/* SPDX-License-Identifier: MIT */
/*
 * H46, H47, H94: what gives memory back may be needed first in the child of a vfork, which starts nothing, or
 * stay with the parent of a raw clone. Both processes then find that out and give back by themselves.
 * Failure: memory that stays, or a thread that does.
 */
#include "probe.h"
#include <sys/syscall.h>

#define BLOCKS 100

static unsigned char *block[BLOCKS];

static void fill(void)
{
	for (size_t i = 0; i < BLOCKS; i++) {
		block[i] = malloc(2 * MIB);
		probe_require(block[i] != NULL, "malloc is NULL");
		memset(block[i], 1, 2 * MIB);
	}
}

static void release(void)
{
	for (size_t i = 0; i < BLOCKS; i++)
		free(block[i]);
}

static void work_a_little(void)
{
	for (int i = 0; i < 300; i++)
		free(malloc(200000));
}

static void require_idle(const char *who)
{
	size_t rss = probe_wait_rss(getpid(), 40 * MIB);

	probe_require(rss <= 40 * MIB, "%s: %zu MiB stay", who, rss / MIB);
	probe_require(probe_wait_threads(getpid()) == 1, "%s: a thread stays", who);
}

int main(void)
{
	pid_t pid;

	probe_limit();
	fill();
	pid = vfork();
	if (pid == 0) {
		release();
		_exit(0);
	}
	probe_child_ok(pid, "vfork");
	work_a_little();
	require_idle("after vfork");

	fill();
	release();
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (pid == 0) {
		work_a_little();
		require_idle("raw child");
		_exit(0);
	}
	probe_child_ok(pid, "raw child");
	require_idle("parent of a raw child");
	return 0;
}
