/* SPDX-License-Identifier: MIT */
/*
 * H46: _Fork() and raw clone or clone3 run no fork handlers, and eight threads are in the middle
 * of malloc and free. The child can use every entry all the same, and can free blocks that the
 * vanished threads had allocated.
 * Failure: a child hangs on a lock that nobody will release (tcmalloc), or crashes.
 */
#include "probe.h"
#include <linux/sched.h>
#include <pthread.h>
#include <sys/syscall.h>

#pragma weak _Fork

enum { WORKERS = 8, SHELF = 512 };
static _Atomic(unsigned char *) shelf[SHELF]; /* threads put blocks here, anybody frees them */
static _Atomic bool stop;

static void swap_block(uint64_t *seed)
{
	size_t bytes = probe_random(seed) % 32 == 0 ? 200000 : 1 + probe_random(seed) % 5000;
	unsigned char *p = malloc(bytes);

	probe_require(p != NULL, "malloc(%zu) is NULL", bytes);
	p[0] = p[bytes - 1] = 7;
	free(atomic_exchange(&shelf[probe_random(seed) % SHELF], p));
}

static void *work(void *arg)
{
	uint64_t seed = (uintptr_t)arg + 1;

	while (!stop)
		swap_block(&seed);
	return NULL;
}

static void child(uint64_t seed)
{
	signal(SIGALRM, SIG_DFL);
	probe_limit();
	for (int i = 0; i < 200; i++)
		swap_block(&seed);
	probe_visit_allocator(seed);
	for (int i = 0; i < SHELF; i++)
		free(atomic_exchange(&shelf[i], NULL));
	_exit(0);
}

static pid_t start(int how)
{
	struct clone_args args = {.exit_signal = SIGCHLD};

	if (how == 0)
		return _Fork != NULL ? _Fork() : fork();
	if (how == 1)
		return (pid_t)syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L);
	pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	return pid < 0 && errno == ENOSYS ? fork() : pid;
}

int main(void)
{
	static const char *const name[] = {"_Fork", "clone", "clone3"};
	int rounds = getenv("TM_LONG") ? 20000 : 120;
	pthread_t t[WORKERS];

	for (uintptr_t i = 0; i < WORKERS; i++)
		pthread_create(&t[i], NULL, work, (void *)i);
	for (int round = 0; round < rounds; round++) {
		pid_t pid = start(round % 3);
		if (pid == 0)
			child((uint64_t)round + 1);
		probe_child_ok(pid, name[round % 3]);
	}
	stop = true;
	for (int i = 0; i < WORKERS; i++)
		pthread_join(t[i], NULL);
	return 0;
}
