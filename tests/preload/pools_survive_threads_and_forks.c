/* SPDX-License-Identifier: MIT */
/*
 * Slots are taken and freed by many threads, each other's too, while children are forked with and
 * without handlers. Failure: a hang, lost content, a slot given out twice.
 */
/* env: TIERMALLOC_POOLS=100000*8@session,1M*4@temporary,2K*100@session,30000*8 */
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>

#include "probe.h"

#define THREADS 4

static _Atomic(char *) shared[16];
static atomic_bool stop;

static void visit(uint64_t *seed, int rounds)
{
	static const size_t sizes[] = {100000, MIB, 2000, 30000};

	for (int i = 0; i < rounds; i++) {
		uint32_t r = probe_random(seed);
		size_t bytes = sizes[r & 3];
		char *p = malloc(bytes);

		probe_require(p != NULL, "malloc is NULL");
		probe_fill(p, 64, (uintptr_t)p);
		memcpy(p + bytes - 64, p, 64);
		p = atomic_exchange(&shared[r / 4 % 16], p);
		if (p == NULL)
			continue;
		probe_require(probe_filled(p, 64, (uintptr_t)p), "content of %p", (void *)p);
		free(p);
	}
}

static void *churn(void *context)
{
	uint64_t seed = (uintptr_t)context * 977 + 3;

	while (!atomic_load(&stop))
		visit(&seed, 10);
	return NULL;
}

int main(void)
{
	pthread_t thread[THREADS];
	uint64_t seed = 99;

	probe_limit();
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, churn, (void *)i);
	for (int i = 0; i < 60; i++) {
		pid_t pid = i % 2 ? fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

		if (pid == 0) {
			visit(&seed, 200);
			_exit(0);
		}
		probe_child_ok(pid, i % 2 ? "fork" : "raw fork");
		visit(&seed, 20);
	}
	atomic_store(&stop, true);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	return 0;
}
