/* SPDX-License-Identifier: MIT */
/*
 * H45, log 20 and 22: a child forked while other threads are in the middle of malloc, of starting
 * a thread or of writing statistics can allocate, fork and start threads itself.
 * Failure: a child hangs on a lock whose owner does not exist in it, or its heap is torn.
 */
#include "probe.h"
#include <malloc.h>
#include <pthread.h>

enum { WORKERS = 6, KEPT = 64 };
static _Atomic bool stop;

static void *work(void *arg)
{
	uint64_t seed = (uintptr_t)arg * 7919 + 1;
	unsigned char *kept[KEPT] = {NULL};

	while (!stop) {
		size_t i = probe_random(&seed) % KEPT;
		size_t bytes =
			probe_random(&seed) % 64 == 0 ? 100000 : 1 + probe_random(&seed) % 3000;
		free(kept[i]);
		kept[i] = malloc(bytes);
		probe_require(kept[i] != NULL, "malloc(%zu) is NULL", bytes);
		kept[i][bytes - 1] = 1;
	}
	for (size_t i = 0; i < KEPT; i++)
		free(kept[i]);
	return NULL;
}

static void *brief(void *arg)
{
	free(malloc(5000));
	return arg;
}

static void *start_threads(void *arg)
{
	pthread_t t;

	while (!stop)
		if (pthread_create(&t, NULL, brief, NULL) == 0)
			pthread_join(t, NULL);
	return arg;
}

static void *write_statistics(void *arg)
{
	FILE *null = fopen("/dev/null", "w");

	while (!stop && null != NULL) {
		malloc_info(0, null);
		mallinfo2();
		malloc_trim(0);
		probe_sleep_ms(5);
	}
	return arg;
}

static void child(int round)
{
	uint64_t seed = (uint64_t)round + 1,
		 end = probe_now_us() + (round % 100 == 0 ? 200000 : 500);
	pthread_t t;

	probe_limit();
	do {
		size_t bytes = KIB + probe_random(&seed) % (63 * KIB);
		unsigned char *p = calloc(1, bytes);
		probe_require(p != NULL && probe_zero(p, bytes), "calloc(1, %zu) in a child",
			      bytes);
		free(p);
		probe_visit_allocator(seed);
	} while (probe_now_us() < end);
	if (round % 16 == 0) {
		probe_require(pthread_create(&t, NULL, brief, NULL) == 0, "no thread in a child");
		pthread_join(t, NULL);
		pid_t pid = fork();
		if (pid == 0) {
			probe_visit_allocator(seed);
			_exit(0);
		}
		probe_child_ok(pid, "fork in a child");
	}
	if (round % 2 == 0)
		exit(0);
	_exit(0);
}

int main(void)
{
	int rounds = getenv("TM_LONG") ? 100000 : 300;
	pthread_t t[WORKERS + 2];

	for (uintptr_t i = 0; i < WORKERS; i++)
		pthread_create(&t[i], NULL, work, (void *)i);
	pthread_create(&t[WORKERS], NULL, start_threads, NULL);
	pthread_create(&t[WORKERS + 1], NULL, write_statistics, NULL);
	for (int round = 0; round < rounds; round++) {
		pid_t pid = fork();
		if (pid == 0)
			child(round);
		probe_child_ok(pid, "forked child");
	}
	stop = true;
	for (int i = 0; i < WORKERS + 2; i++)
		pthread_join(t[i], NULL);
	return 0;
}
