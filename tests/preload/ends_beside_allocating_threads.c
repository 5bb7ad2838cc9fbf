/* SPDX-License-Identifier: MIT */
/*
 * H18 H19: a process ends by quick_exit, exit, _Exit or the end of main while six threads allocate, and its
 * exit handlers allocate too.
 * Failure: a hang on what a thread holds, a crash, or another exit status.
 */
#include "probe.h"
#include <pthread.h>

enum { ROUNDS = 48, THREADS = 6 };

static void *work(void *arg)
{
	uint64_t seed = (uintptr_t)arg + 1;

	for (;;) {
		size_t bytes = 1 + probe_random(&seed) % (probe_random(&seed) % 8 ? 3000 : 300000);
		char *p = malloc(bytes);

		if (p != NULL)
			p[0] = p[bytes - 1] = 1;
		free(p);
	}
	return NULL;
}

static void handler(void)
{
	for (size_t i = 0; i < 500; i++)
		free(malloc(i * 37));
}

static void child(int round)
{
	pthread_t t;

	signal(SIGALRM, SIG_DFL);
	probe_limit();
	at_quick_exit(handler);
	atexit(handler);
	for (uintptr_t i = 0; i < THREADS; i++)
		probe_require(pthread_create(&t, NULL, work, (void *)i) == 0, "no thread");
	probe_sleep_ms(round % 7);
	switch (round % 3) {
	case 0: quick_exit(7);
	case 1: exit(7);
	default: _Exit(7);
	}
}

int main(void)
{
	probe_limit();
	for (int round = 0; round < ROUNDS; round++) {
		pid_t pid = fork();

		if (pid == 0)
			child(round);
		int status = probe_wait(pid);
		probe_require(WIFEXITED(status) && WEXITSTATUS(status) == 7,
			      "round %d: status %#x instead of an exit by 7", round,
			      (unsigned)status);
	}
	return 0;
}
