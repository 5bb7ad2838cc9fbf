/* SPDX-License-Identifier: MIT */
/*
 * Issue 3, 5: the same for 400 MiB of small blocks, freed in random order by the main thread and
 * by a second thread that stays asleep: the caches of both are emptied without a call of theirs.
 * Failure: empty spans stay with their threads.
 */
#include "probe.h"
#include <pthread.h>

enum { HALF = 200 << 20, MAX = 1 << 20 };

static void burst(uint64_t seed)
{
	static __thread unsigned char *block[MAX];
	size_t n = 0;

	for (size_t bytes = 0; bytes < HALF && n < MAX; n++) {
		size_t size = 16 + probe_random(&seed) % 2000;
		block[n] = malloc(size);
		probe_require(block[n] != NULL, "malloc is NULL");
		memset(block[n], 1, size);
		bytes += size;
	}
	for (size_t i = n; i > 1; i--) {
		size_t j = probe_random(&seed) % i;
		unsigned char *p = block[j];
		block[j] = block[i - 1];
		block[i - 1] = p;
	}
	for (size_t i = 0; i < n; i++)
		free(block[i]);
	/* the list of pointers is not the allocator's */
	memset(block, 0, n * sizeof(block[0]));
}

static void *sleeper(void *arg)
{
	burst(2);
	pause();
	return arg;
}

int main(void)
{
	pthread_t t;

	probe_limit();
	probe_require(pthread_create(&t, NULL, sleeper, NULL) == 0, "no thread");
	burst(1);
	/* 16 MiB are the two lists of pointers */
	size_t rss = probe_wait_rss(0, 56 * MIB);
	probe_require(rss <= 56 * MIB, "%zu MiB are still held in sleep", rss / MIB);
	return 0;
}
