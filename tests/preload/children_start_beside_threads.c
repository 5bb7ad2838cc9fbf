/* SPDX-License-Identifier: MIT */
/*
 * H47: six threads start programs by vfork and exec, by posix_spawn and by fork and exec, as fast as they
 * can, and allocate in between; children of vfork allocate too.
 * Failure: a child that crashes or hangs, a parent's heap that a child has changed.
 */
#include "probe.h"
#include <pthread.h>
#include <spawn.h>

enum { THREADS = 6, STARTS = 30 };
static char *const words[] = {(char *)(uintptr_t) "true", NULL};

static pid_t start(int how)
{
	pid_t pid = -1;

	if (how == 0)
		return posix_spawn(&pid, "/bin/true", NULL, NULL, words, environ) == 0 ? pid : -1;
	pid = how == 1 ? vfork() : fork();
	if (pid == 0) {
		void *volatile p = malloc(100);

		free(p);
		execv("/bin/true", words);
		_exit(127);
	}
	return pid;
}

static void *work(void *arg)
{
	unsigned char *block[20];

	for (int i = 0; i < STARTS; i++) {
		for (size_t k = 0; k < 20; k++) {
			block[k] = malloc(100 + k * k * 500);
			memset(block[k], (int)k, 100 + k * k * 500);
		}
		pid_t pid = start(i % 3);
		int status = 0;

		probe_require(pid > 0, "no child: %s", strerror(errno));
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		probe_require(status == 0, "a child's status is %#x", (unsigned)status);
		for (size_t k = 0; k < 20; k++) {
			probe_require(block[k][0] == k && block[k][99 + k * k * 500] == k,
				      "block %zu has changed", k);
			free(block[k]);
		}
	}
	return arg;
}

int main(void)
{
	pthread_t t[THREADS];

	probe_limit();
	if (access("/bin/true", X_OK) != 0)
		probe_skip("no /bin/true");
	for (int i = 0; i < THREADS; i++)
		probe_require(pthread_create(&t[i], NULL, work, NULL) == 0, "no thread");
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	return 0;
}
