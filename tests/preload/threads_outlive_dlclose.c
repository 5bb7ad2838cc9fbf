/* SPDX-License-Identifier: MIT */
/*
 * H16, log 47: the preloaded library is opened once more by name and closed, with threads alive
 * that end afterwards. Failure: the library is unmapped (memkind#874, mimalloc#809) and the
 * thread's destructor jumps into nothing.
 */
#include "claim.h"

#include <pthread.h>

static pthread_barrier_t gate;

static void *run(void *unused)
{
	void *p = malloc(1000);

	pthread_barrier_wait(&gate);
	pthread_barrier_wait(&gate); /* the close is behind us */
	free(p);
	for (int i = 0; i < 1000; i++)
		free(malloc((size_t)i));
	return unused;
}

int main(void)
{
	pthread_t thread[4];

	pthread_barrier_init(&gate, NULL, 5);
	for (int i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, run, NULL);
	pthread_barrier_wait(&gate);
	for (int i = 0; i < 10; i++) {
		/* a library that may not be opened late is found by name all the same, or refused */
		void *h = dlopen(*claim_preload() ? claim_preload() : "libc.so.6",
				 RTLD_NOW | (i & 1 ? RTLD_NOLOAD : 0));
		if (h)
			for (int j = 0; j < 3; j++)
				dlclose(h);
		free(malloc(100));
	}
	pthread_barrier_wait(&gate);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	return claim_end();
}
