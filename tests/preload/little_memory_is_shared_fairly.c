/* SPDX-License-Identifier: MIT */
/*
 * H53: limits of a few MiB, set before the program starts, on data (8 MiB) and on addresses (12 MiB), leave
 * most of it to the program: small blocks, blocks of whole pages, growing ones and a thread's.
 * Failure: what the library maps ahead of need, its tables, and what it keeps for emergencies take it.
 */
#include "probe.h"
#include <pthread.h>

enum { SMALL = 20000, SMALL_BYTES = 64, PAGES = 5, PAGES_BYTES = 90000 };

static void *hold(void *arg)
{
	char *p = malloc(3000);

	probe_require(p != NULL, "no memory in a thread");
	memset(p, 1, 3000);
	return arg == NULL ? p : arg;
}

static void use(void)
{
	static char *small[SMALL], *pages[PAGES];
	pthread_attr_t attr;
	pthread_t thread;
	char *grows = NULL;
	void *of_thread;

	for (int i = 0; i < SMALL; i++) {
		small[i] = malloc(SMALL_BYTES);
		probe_require(small[i] != NULL, "no memory for small block %d", i);
		memset(small[i], 1, SMALL_BYTES);
	}
	for (int i = 0; i < PAGES; i++) {
		pages[i] = malloc(PAGES_BYTES);
		probe_require(pages[i] != NULL, "no memory for block %d", i);
		memset(pages[i], 1, PAGES_BYTES);
	}
	for (size_t bytes = 1000; bytes < 9000; bytes += 1000) {
		grows = realloc(grows, bytes);
		probe_require(grows != NULL, "no memory to grow to %zu", bytes);
	}
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	probe_require(pthread_create(&thread, &attr, hold, NULL) == 0, "no thread");
	pthread_join(thread, &of_thread);
	free(of_thread);
	for (int i = 0; i < SMALL; i++)
		free(small[i]);
	for (int i = 0; i < PAGES; i++)
		free(pages[i]);
	free(grows);
}

static void limited(char *self, int kind, size_t bytes, const char *name)
{
	pid_t pid = fork();

	if (pid == 0) {
		setrlimit(kind, &(struct rlimit){bytes, bytes});
		execl(self, self, "limited", NULL);
		_exit(9);
	}
	probe_child_ok(pid, name);
}

int main(int argc, char **argv)
{
	probe_limit();
	if (argc > 1) {
		use();
		return 0;
	}
	limited(argv[0], RLIMIT_DATA, 8 * MIB, "8 MiB of data");
	limited(argv[0], RLIMIT_AS, 12 * MIB, "12 MiB of addresses");
	return 0;
}
