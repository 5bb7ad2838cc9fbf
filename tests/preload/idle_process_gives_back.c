/* SPDX-License-Identifier: MIT */
/*
 * Issue 3, 5: a single-threaded process frees 500 MiB and sleeps without another call into the
 * allocator. It becomes small by itself, and no thread is left behind when the work is done.
 * Failure: memory stays until the next call (tcmalloc, mimalloc; jemalloc without its thread).
 */
#include "probe.h"

enum { BLOCKS = 250, BYTES = 2 << 20 };

int main(void)
{
	static unsigned char *block[BLOCKS];

	probe_limit();
	for (int i = 0; i < BLOCKS; i++) {
		block[i] = malloc(BYTES + (size_t)i * 4096);
		probe_require(block[i] != NULL, "malloc is NULL");
		memset(block[i], 1, BYTES + (size_t)i * 4096);
	}
	for (int i = 0; i < BLOCKS; i++)
		free(block[i]);
	size_t rss = probe_wait_rss(0, 50 * MIB);
	probe_require(rss <= 50 * MIB, "%zu MiB are still held in sleep", rss / MIB);
	probe_require(probe_wait_threads(0) == 1, "a thread stays in an idle process");
	return 0;
}
