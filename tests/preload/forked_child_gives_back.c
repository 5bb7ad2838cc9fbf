/* SPDX-License-Identifier: MIT */
/*
 * H94: a parent frees 500 MiB and forks at once, before anything went back. The helper does not
 * survive the fork and the children make no allocation call, yet they give the memory back.
 * Failure: a sleeping child stays at 500 MiB (any allocator that purges on later calls only).
 */
#include "probe.h"

enum { BLOCKS = 125, BYTES = 4 << 20, CHILDREN = 3 };

int main(void)
{
	static unsigned char *block[BLOCKS];
	pid_t pid[CHILDREN];
	int end[2];

	probe_limit();
	for (int i = 0; i < BLOCKS; i++) {
		block[i] = malloc(BYTES - (size_t)i * 64);
		probe_require(block[i] != NULL, "malloc is NULL");
		memset(block[i], 1, BYTES - (size_t)i * 64);
	}
	probe_require(pipe(end) == 0, "no pipe");
	for (int i = 0; i < BLOCKS; i++)
		free(block[i]);
	for (int i = 0; i < CHILDREN; i++) {
		pid[i] = fork();
		if (pid[i] == 0) {
			char c;
			close(end[1]);
			ssize_t n = read(end[0], &c, 1); /* until the parent closes its end */
			_exit(n == 0 ? 0 : 1);
		}
		probe_require(pid[i] > 0, "no child");
	}
	for (int i = 0; i < CHILDREN; i++) {
		size_t rss = probe_wait_rss(pid[i], 50 * MIB);
		probe_require(rss <= 50 * MIB, "child %d still holds %zu MiB", i, rss / MIB);
		long threads = probe_wait_threads(pid[i]);
		probe_require(threads == 1, "child %d has %ld threads when all is done", i,
			      threads);
	}
	close(end[1]);
	for (int i = 0; i < CHILDREN; i++)
		probe_child_ok(pid[i], "sleeping child");
	return 0;
}
