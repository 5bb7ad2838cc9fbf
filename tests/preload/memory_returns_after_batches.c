/* SPDX-License-Identifier: MIT */
/*
 * Log 63, 66, 67: eight threads run 30 batches of 300 arrays of 10 to 500 KB, the same is done in
 * sequence, and threads are cancelled in the middle of a request whose arrays another thread frees.
 * Some small results stay alive. Afterwards the idle process is small each time.
 * Failure: what the threads cached stays resident, more the more threads took part.
 */
#include "probe.h"
#include <pthread.h>

enum { THREADS = 8, BATCHES = 6, ARRAYS = 300, RESULTS = THREADS * BATCHES * 3 };
static void *result[RESULTS];
static unsigned char *request[THREADS][ARRAYS];
static _Atomic bool cancelled;

static void batch(uintptr_t me, uint64_t *seed, size_t arrays)
{
	for (size_t i = 0; i < arrays && !cancelled; i++) {
		size_t bytes = 10000 + probe_random(seed) % 490000;
		unsigned char *p = malloc(bytes);
		probe_require(p != NULL, "malloc is NULL");
		memset(p, 1, bytes);
		request[me][i] = p;
	}
}

static void drop(uintptr_t me)
{
	for (size_t i = 0; i < ARRAYS; i++) {
		free(request[me][i]);
		request[me][i] = NULL;
	}
}

static void *work(void *arg)
{
	uintptr_t me = (uintptr_t)arg;
	uint64_t seed = me + 1;

	for (int i = 0; i < BATCHES; i++) {
		batch(me, &seed, ARRAYS / 3);
		free(result[me * BATCHES + (size_t)i]);
		result[me * BATCHES + (size_t)i] = malloc(700);
		drop(me);
	}
	return NULL;
}

static void *unfinished(void *arg)
{
	uint64_t seed = (uintptr_t)arg + 100;

	batch((uintptr_t)arg, &seed, ARRAYS);
	return NULL;
}

static void in_parallel(void *(*job)(void *), bool cancel)
{
	pthread_t t[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		probe_require(pthread_create(&t[i], NULL, job, (void *)i) == 0, "no thread");
	if (cancel) {
		probe_sleep_ms(150);
		cancelled = true;
	}
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	for (uintptr_t i = 0; i < THREADS; i++)
		drop(i);
}

static void require_small(const char *after)
{
	/* up to 32 MiB of free memory may stay: a helper is worth its start from there on */
	size_t most = 48 * MIB, rss = probe_wait_rss(0, most);

	probe_require(rss <= most, "%zu MiB stay after %s", rss / MIB, after);
}

int main(void)
{
	probe_limit();
	for (uintptr_t i = 0; i < THREADS; i++)
		work((void *)i);
	require_small("batches in sequence");
	in_parallel(work, false);
	require_small("batches in 8 threads");
	in_parallel(unfinished, true);
	require_small("cancelled requests");
	return 0;
}
