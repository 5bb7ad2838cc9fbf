/* SPDX-License-Identifier: MIT */
/*
 * H48, log 23: fork handlers of other libraries and of the program allocate and free before, in
 * the parent after and in the child after the fork, whichever side of ours they were registered
 * on, while threads allocate.
 * Failure: a handler runs while our locks are held by our own handler, and the fork hangs.
 */
#include "probe.h"
#include <pthread.h>

enum { WORKERS = 6, FORKS = 60 };
static _Atomic bool stop;
static void *kept;

static void handler(void)
{
	free(kept);
	kept = malloc(70000);
	probe_visit_allocator(5);
}

static void *work(void *arg)
{
	uint64_t seed = (uintptr_t)arg + 1;

	while (!stop)
		free(malloc(1 + probe_random(&seed) % 100000));
	return NULL;
}

static int fork_often(void)
{
	pthread_t t[WORKERS];

	probe_limit();
	pthread_atfork(handler, handler, handler);
	for (uintptr_t i = 0; i < WORKERS; i++)
		pthread_create(&t[i], NULL, work, (void *)i);
	for (int i = 0; i < FORKS; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			probe_limit();
			probe_visit_allocator(9);
			_exit(0);
		}
		probe_child_ok(pid, "forked child");
	}
	stop = true;
	for (int i = 0; i < WORKERS; i++)
		pthread_join(t[i], NULL);
	return 0;
}

int main(int argc, char **argv)
{
	const char *ours = getenv("LD_PRELOAD") ? getenv("LD_PRELOAD") : "";
	char lib[4096], list[8192 + 8];

	if (argc > 1)
		return fork_often();
	probe_beside(lib, sizeof(lib), "libatfork_allocates.so");
	for (int order = 0; order < 2; order++) {
		snprintf(list, sizeof(list), "%s:%s", order ? lib : ours, order ? ours : lib);
		setenv("LD_PRELOAD", list, 1);
		probe_child_ok(probe_again(argv[0], "fork"), order ? "before us" : "after us");
	}
	return 0;
}
