/* SPDX-License-Identifier: MIT */
/* run: none */
/*
 * The program of fork_cost_is_bounded.py: fork_subject THREADS FORKS. So many threads with caches, and so
 * many forks beside them, each of whose children ends at once.
 */
#include "probe.h"
#include <pthread.h>

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

int main(int argc, char **argv)
{
	int threads = argc > 2 ? atoi(argv[1]) : 1, forks = argc > 2 ? atoi(argv[2]) : 1;
	pthread_t t;

	probe_limit();
	pthread_barrier_init(&ready, NULL, (unsigned)threads + 1);
	for (int i = 0; i < threads; i++)
		probe_require(pthread_create(&t, NULL, hold, NULL) == 0, "no thread");
	pthread_barrier_wait(&ready);
	for (int i = 0; i < forks; i++) {
		pid_t pid = fork();
		if (pid == 0)
			_exit(0);
		probe_child_ok(pid, "child");
	}
	return 0;
}
