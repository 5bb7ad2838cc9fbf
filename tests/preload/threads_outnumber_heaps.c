/* SPDX-License-Identifier: MIT */
/*
 * More threads than there can be heaps (8192) are alive at once, each with blocks of its own that
 * others free. Failure: a request that fails, or blocks that overlap.
 */
#include "probe.h"

#include <pthread.h>

enum { THREADS = 8500, BLOCKS = 3, STACK = 16 << 10, FILLED = 40 };
static unsigned char *block[THREADS][BLOCKS];
static pthread_t thread[THREADS];
static atomic_int arrived, refused, overwritten, may_go;

static size_t bytes_of(size_t owner, size_t i)
{
	/* together more than the memory for signal handlers, which would serve a few */
	return (i == 2 ? 20000 : 40) + owner % 50;
}

static void *live(void *number)
{
	size_t me = (size_t)number;

	for (size_t i = 0; i < BLOCKS; i++) {
		block[me][i] = malloc(bytes_of(me, i));
		if (block[me][i] == NULL)
			atomic_fetch_add(&refused, 1);
		else
			memset(block[me][i], (int)(me % 251), FILLED);
	}
	atomic_fetch_add(&arrived, 1);
	while (atomic_load(&may_go) == 0)
		usleep(50000);
	/* the last ones are without a heap of their own, and are freed by the first ones */
	size_t other = THREADS - 1 - me;
	for (size_t i = 0; i < BLOCKS; i++) {
		for (size_t k = 0; block[other][i] != NULL && k < FILLED; k++)
			if (block[other][i][k] != other % 251)
				atomic_fetch_add(&overwritten, 1);
		free(block[other][i]);
	}
	return NULL;
}

int main(void)
{
	pthread_attr_t attr;

	probe_limit();
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	for (size_t i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], &attr, live, (void *)i) != 0)
			probe_skip("only %zu threads may run here", i);
	while (atomic_load(&arrived) < THREADS)
		usleep(1000);
	atomic_store(&may_go, 1);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	probe_require(refused == 0, "%d requests failed", refused);
	probe_require(overwritten == 0, "%d bytes of blocks were overwritten", overwritten);
	return 0;
}
