/* SPDX-License-Identifier: MIT */
/*
 * The program of ledgers_come_with_memory.py: late_subject WHAT...
 *   small        allocate .5 MiB           large    grow to 8 MiB and churn
 *   thread       large, in a thread while another one waits with a heap of its own
 *   more         45 MiB in blocks of 3000 bytes
 *   fork         a child that does the rest of the words; the parent waits for it
 *   tell         print what lives (objects bytes) and wait for a line
 *   exec         start `true` instead of this program
 *   kill _exit exit
 */
/* run: none */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SHELF = 20000 };
static char *shelf[SHELF];
static size_t size_of[SHELF];
static long objects, bytes;

static void put(size_t at, size_t size)
{
	if (shelf[at] != NULL) {
		objects--;
		bytes -= (long)size_of[at];
		free(shelf[at]);
	}
	shelf[at] = size == 0 ? NULL : malloc(size);
	size_of[at] = size;
	if (size != 0) {
		objects++;
		bytes += (long)size;
		memset(shelf[at], 1, size);
	}
}

static void fill(size_t from, size_t to, size_t rounds)
{
	for (size_t n = 0; n < rounds * (to - from); n++) {
		size_t r = n * 2654435761u >> 7;

		put(from + r % (to - from), n % 97 == 0   ? 70000 + r % 5000
					    : n % 13 == 0 ? 1100 + r % 9000
					    : n % 3 == 0  ? 0
							  : 16 + r % 900);
	}
}

static void *large(void *arg)
{
	(void)arg;
	fill(500, 5000, 6);
	return NULL;
}

static pthread_barrier_t barrier;

static void *wait_here(void *arg)
{
	free(malloc(100));
	pthread_barrier_wait(&barrier);
	pause();
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t t;
	char line[8];

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "small") == 0) {
			for (size_t n = 0; n < 500; n++)
				put(n, 1 + n * 37 % 1000);
			for (size_t n = 0; n < 500; n += 3)
				put(n, 0);
		} else if (strcmp(argv[i], "large") == 0) {
			large(NULL);
		} else if (strcmp(argv[i], "thread") == 0) {
			pthread_barrier_init(&barrier, NULL, 2);
			pthread_create(&t, NULL, wait_here, NULL);
			pthread_barrier_wait(&barrier);
			pthread_create(&t, NULL, large, NULL);
			pthread_join(t, NULL);
		} else if (strcmp(argv[i], "more") == 0) {
			for (size_t at = 5000; at < SHELF; at++)
				put(at, 3000);
		} else if (strcmp(argv[i], "fork") == 0) {
			if (fork() != 0) {
				wait(NULL);
				return 0;
			}
			objects = bytes = 0;
			memset(shelf, 0, sizeof(shelf));
		} else if (strcmp(argv[i], "sleep") == 0) {
			usleep(1200000);
		} else if (strcmp(argv[i], "tell") == 0) {
			dprintf(1, "%d %ld %ld\n", (int)getpid(), objects, bytes);
			if (read(0, line, 1) != 1)
				return 1;
		} else if (strcmp(argv[i], "exec") == 0) {
			execlp("true", "true", (char *)NULL);
		} else if (strcmp(argv[i], "kill") == 0) {
			raise(SIGKILL);
		} else if (strcmp(argv[i], "_exit") == 0) {
			_exit(0);
		}
	}
	return 0;
}
