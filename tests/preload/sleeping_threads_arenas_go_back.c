/* SPDX-License-Identifier: MIT */
/*
 * A thread frees 64 MiB of temporary blocks of 16 KiB, which nearly all its memory is, and sleeps. The
 * helper gives them back.
 * Failure: they stay until the thread asks for such a block again.
 */
#include "probe.h"

#include <pthread.h>
#include <stdlib.h>

#include "shim/tiermalloc.h"

enum { WARM = 200, BLOCKS = 4000, BYTES = 16000, LONG_BLOCKS = 64 };

static void *block[BLOCKS], *wakes_helper[LONG_BLOCKS];

static void __attribute__((noinline)) * temporary(size_t bytes)
{
	void *volatile p = malloc(bytes);

	return p;
}

static void take(int blocks)
{
	for (int i = 0; i < blocks; i++) {
		block[i] = temporary(BYTES);
		probe_require(block[i] != NULL, "malloc is NULL");
		memset(block[i], 1, BYTES);
	}
}

static void give(int blocks)
{
	for (int i = 0; i < blocks; i++)
		free(block[i]);
}

static size_t in_arenas(void)
{
	struct tiermalloc_stats stats = {.struct_bytes = sizeof(stats)};

	tiermalloc_stats(&stats);
	return stats.live_bytes[TIERMALLOC_TEMPORARY];
}

static void *work(void *unused)
{
	size_t before = 0;

	/* until it is known that they are temporary */
	for (int step = 0; step < 20000 && before < WARM * BYTES / 2; step++) {
		tiermalloc_step();
		take(WARM);
		before = in_arenas();
		give(WARM);
	}
	take(BLOCKS);
	probe_require(in_arenas() > 32 * MIB, "not in arenas");
	for (int i = 0; i < LONG_BLOCKS; i++) {
		wakes_helper[i] = temporary(1 << 20);
		memset(wakes_helper[i], 1, 1 << 20);
	}
	give(BLOCKS);
	for (int i = 0; i < LONG_BLOCKS; i++)
		free(wakes_helper[i]);
	size_t rss = probe_wait_rss(0, 32 * MIB);
	probe_require(rss <= 32 * MIB, "%zu MiB are still held in sleep", rss / MIB);
	return unused;
}

int main(void)
{
	pthread_t thread;

	probe_limit();
	for (int i = 0; i < 16; i++)
		memset(temporary(1 << 20), 1, 1 << 20);
	pthread_create(&thread, NULL, work, NULL);
	pthread_join(thread, NULL);
	return 0;
}
