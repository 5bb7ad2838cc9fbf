/* SPDX-License-Identifier: MIT */
/*
 * Log 25: eight threads of the parent hold 16 MiB each, some live and some freed. In the forked
 * child, which has none of these threads, the free part serves the child's own allocations, and
 * the live part comes back when the child frees it. The same where the parent's helper has given back
 * pages of the sleeping threads before.
 * Failure: the child grows by what it could have reused, or keeps what it freed.
 */
/* env: TIERMALLOC_GIVEBACK=off */
#include "probe.h"
#include <malloc.h>
#include <pthread.h>

enum { THREADS = 8, BYTES = 16 << 20, SIZES = 4, BLOCKS = BYTES / 256 };
static const size_t sizes[SIZES] = {48, 200, 1000, 6000};
static unsigned char *live[THREADS][BLOCKS];
static pthread_barrier_t ready;
static bool given_back;

static void *hold(void *arg)
{
	uintptr_t me = (uintptr_t)arg;
	size_t bytes = 0, n = 0;
	static __thread unsigned char *dead[BLOCKS];

	for (; bytes < BYTES && n < BLOCKS; n++) {
		size_t size = sizes[n % SIZES];
		live[me][n] = malloc(size);
		dead[n] = malloc(size);
		memset(live[me][n], 1, size);
		memset(dead[n], 1, size);
		bytes += 2 * size;
	}
	while (n-- > 0)
		free(dead[n]);
	pthread_barrier_wait(&ready);
	pause();
	return NULL;
}

static void child(void)
{
	size_t start = probe_rss_anon(0), bytes = 0;
	static unsigned char *own[THREADS * BLOCKS];
	size_t n = 0;

	probe_limit();
	for (; bytes < THREADS * (size_t)BYTES / 2 - 4 * MIB; n++) {
		size_t size = sizes[n % SIZES];
		own[n] = malloc(size);
		memset(own[n], 2, size);
		bytes += size;
	}
	size_t grown = probe_rss_anon(0);
	grown = grown > start ? grown - start : 0;
	/* the pointers' own table is 8 bytes a block */
	probe_require(given_back || grown < 24 * MIB, "%zu MiB more for %zu MiB that lay free",
		      grown / MIB, bytes / MIB);
	while (n-- > 0)
		free(own[n]);
	for (int t = 0; t < THREADS; t++)
		for (size_t i = 0; i < BLOCKS; i++)
			free(live[t][i]);
	malloc_trim(0);
	size_t left = probe_rss_anon(0);
	probe_require(left < 24 * MIB, "%zu MiB stay after everything was freed", left / MIB);
	_exit(0);
}

static void have_a_child(void)
{
	pthread_t t;

	pthread_barrier_init(&ready, NULL, THREADS + 1);
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&t, NULL, hold, (void *)i);
	pthread_barrier_wait(&ready);
	if (given_back)
		probe_sleep_ms(2000);
	pid_t pid = fork();
	if (pid == 0)
		child();
	probe_child_ok(pid, "forked child");
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		given_back = true;
		have_a_child();
		return 0;
	}
	have_a_child();
	unsetenv("TIERMALLOC_GIVEBACK");
	probe_child_ok(probe_again(argv[0], "given back"), "given back before");
	return 0;
}
