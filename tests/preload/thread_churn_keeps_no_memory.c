/* SPDX-License-Identifier: MIT */
/*
 * H15, log 45: 20000 threads, each with blocks that only its key destructors free, in all four
 * rounds of glibc, the last of which runs when the allocator's own state may be gone. Right:
 * resident memory grows by less than 1 MiB. Failure: a cache made anew per thread and leaked, or
 * used after free.
 */
#include "claim.h"

#include <pthread.h>

enum { THREADS = 20000, BLOCKS = 130, AT_ONCE = 4 };

struct bag {
	int round;
	void *block[BLOCKS];
};

static pthread_key_t key;

static void destroy(void *data)
{
	struct bag *bag = data;

	for (int i = 0; i < BLOCKS; i++) {
		free(bag->block[i]);
		bag->block[i] = malloc((size_t)i * 9 % 1500 + 1);
		memset(bag->block[i], 1, 1);
	}
	if (++bag->round < PTHREAD_DESTRUCTOR_ITERATIONS) {
		pthread_setspecific(key, bag);
		return;
	}
	for (int i = 0; i < BLOCKS; i++)
		free(bag->block[i]);
	free(bag);
}

static void *run(void *unused)
{
	struct bag *bag = calloc(1, sizeof(*bag));

	for (int i = 0; i < BLOCKS; i++)
		bag->block[i] = malloc((size_t)i * 11 % 2000 + 1);
	pthread_setspecific(key, bag);
	return unused;
}

static void threads(int count)
{
	pthread_t thread[AT_ONCE];

	for (int i = 0; i < count; i += AT_ONCE) {
		for (int j = 0; j < AT_ONCE; j++)
			claim(pthread_create(&thread[j], NULL, run, NULL) == 0, "pthread_create");
		for (int j = 0; j < AT_ONCE; j++)
			pthread_join(thread[j], NULL);
	}
}

int main(void)
{
	long before = 0, grown = LONG_MAX, size_before, size_grown = 0;

	pthread_key_create(&key, destroy);
	threads(2000);
	size_before = claim_status_kib("VmSize:");
	/* what settles late is no leak: one of three rounds must be quiet */
	for (int round = 0; round < 3 && grown >= 1024; round++) {
		before = claim_status_kib("VmRSS:");
		threads(THREADS);
		grown = claim_status_kib("VmRSS:") - before;
	}
	size_grown = claim_status_kib("VmSize:") - size_before;
	claim(grown < 1024, "%d threads: resident %ld KiB, %ld more", THREADS, before, grown);
	claim(size_grown < 65536 + 1024, "size grew by %ld KiB", size_grown);
	return claim_end();
}
