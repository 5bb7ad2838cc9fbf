/* SPDX-License-Identifier: MIT */
/*
 * H60: in a memory cgroup of 200 MiB a program that never has more than 120 MiB live, in turn as
 * small, medium and large blocks and in other threads, is not killed: what is only cached goes
 * back before the limit is met.
 * Failure: the kernel kills it with purgeable memory in its caches.
 */
#include "probe.h"
#include <pthread.h>
#include <sys/stat.h>

enum { LIVE = 120 << 20, MAX = LIVE / 256 };
static char folder[256];

static void put(const char *file, const char *text)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));
	if (fd >= 0)
		close(fd);
	if (n < 0) {
		rmdir(folder);
		probe_skip("cannot write %s", path);
	}
}

static void *use(void *arg)
{
	static unsigned char *block[MAX];
	size_t size = (size_t)(uintptr_t)arg, n = 0;

	for (; n < MAX && (n + 1) * size <= LIVE; n++) {
		block[n] = malloc(size);
		probe_require(block[n] != NULL, "malloc(%zu) is NULL", size);
		memset(block[n], 1, size);
	}
	while (n-- > 0)
		free(block[n]);
	return NULL;
}

static void child(void)
{
	static const size_t sizes[] = {300, 5000, 3 * MIB, 48, 30000, 90000, 700000};
	char pid[32];
	pthread_t t;

	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	put("cgroup.procs", pid);
	probe_limit();
	for (int round = 0; round < 14; round++) {
		void *size = (void *)(uintptr_t)(sizes[round % 7] < 256 ? 256 : sizes[round % 7]);
		if (round % 3 == 0) {
			use(size);
			continue;
		}
		probe_require(pthread_create(&t, NULL, use, size) == 0, "no thread");
		pthread_join(t, NULL);
	}
	_exit(0);
}

int main(void)
{
	bool v1 = access("/sys/fs/cgroup/memory/memory.limit_in_bytes", F_OK) == 0;

	snprintf(folder, sizeof(folder), "/sys/fs/cgroup/%stm-test-%d", v1 ? "memory/" : "",
		 (int)getpid());
	if (mkdir(folder, 0755) != 0)
		probe_skip("no cgroup can be made here");
	put(v1 ? "memory.limit_in_bytes" : "memory.max", "209715200");
	pid_t pid = fork();
	if (pid == 0)
		child();
	int status = probe_wait(pid);
	for (int i = 0; i < 5000 && rmdir(folder) != 0; i++)
		probe_sleep_ms(20);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		return 77;
	probe_require(status == 0, "ended with %#x, by signal %d", (unsigned)status,
		      WIFSIGNALED(status) ? WTERMSIG(status) : 0);
	return 0;
}
