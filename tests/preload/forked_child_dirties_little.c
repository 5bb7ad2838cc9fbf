/* SPDX-License-Identifier: MIT */
/*
 * H51: a parent holds 256 MiB in 4 KiB blocks; each of four children frees every tenth block. Only
 * the pages of freed blocks and a little bookkeeping are copied: live neighbours stay shared.
 * Failure: refills, purges or tables dirty far more than was freed.
 */
#include "probe.h"

enum { BLOCKS = 65536, BYTES = 4096, CHILDREN = 4 };
static unsigned char *block[BLOCKS];

static void child(void)
{
	long before = probe_field("/proc/self/smaps_rollup", "Private_Dirty");

	probe_limit();
	if (before < 0)
		probe_skip("no /proc/self/smaps_rollup");
	for (int i = 0; i < BLOCKS; i += 10)
		free(block[i]);
	long after = probe_field("/proc/self/smaps_rollup", "Private_Dirty");
	/* a block of 4 KiB may lie on two pages */
	long freed = BLOCKS / 10 * 8;
	probe_require(after - before < freed + 6 * 1024, "%ld KiB were dirtied by freeing %d KiB",
		      after - before, BLOCKS / 10 * 4);
	_exit(0);
}

int main(void)
{
	for (int i = 0; i < BLOCKS; i++) {
		block[i] = malloc(BYTES);
		probe_require(block[i] != NULL, "malloc is NULL");
		memset(block[i], 1, BYTES);
	}
	for (int i = 0; i < CHILDREN; i++) {
		pid_t pid = fork();
		if (pid == 0)
			child();
		probe_child_ok(pid, "child");
	}
	return 0;
}
