/* SPDX-License-Identifier: MIT */
/*
 * H49, log 24: fork with 100 threads that all have caches costs about what _Fork, which runs no
 * handlers, costs: the number of locks to take does not grow with the threads.
 * Failure: the median fork takes more than twice the median _Fork and .4 ms.
 */
/* serial: yes */
#include "probe.h"
#include <pthread.h>

#pragma weak _Fork

enum { THREADS = 100, FORKS = 200 };
static pthread_barrier_t ready;

static void *hold(void *arg)
{
	void *p[40];

	for (size_t i = 0; i < 40; i++)
		p[i] = malloc(16 << i % 13);
	for (size_t i = 0; i < 40; i += 2)
		free(p[i]);
	pthread_barrier_wait(&ready);
	pause();
	return arg;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void measure(pid_t (*start)(void), uint64_t us[FORKS])
{
	for (int i = 0; i < FORKS; i++) {
		uint64_t t = probe_now_us();
		pid_t pid = start();
		if (pid == 0)
			_exit(0);
		us[i] = probe_now_us() - t;
		probe_child_ok(pid, 5000, "child");
	}
	qsort(us, FORKS, sizeof(us[0]), compare);
}

int main(void)
{
	uint64_t with[FORKS], without[FORKS];
	pthread_t t;

	probe_limit(60);
	if (_Fork == NULL)
		probe_skip("no _Fork in this libc");
	pthread_barrier_init(&ready, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++)
		probe_require(pthread_create(&t, NULL, hold, NULL) == 0, "no thread");
	pthread_barrier_wait(&ready);
	measure(_Fork, without);
	measure(fork, with);
	fprintf(stderr, "us per fork: median %lu, p99 %lu; _Fork: %lu, %lu\n",
		(unsigned long)with[FORKS / 2], (unsigned long)with[FORKS * 99 / 100],
		(unsigned long)without[FORKS / 2], (unsigned long)without[FORKS * 99 / 100]);
	probe_require(with[FORKS / 2] < 2 * without[FORKS / 2] + 400, "fork handlers are dear");
	return 0;
}
