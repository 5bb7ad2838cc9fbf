/* SPDX-License-Identifier: MIT */
/*
 * H19, log 48: SIGTERM arrives at a random moment, 200 times, in the middle of malloc or while
 * exit handlers run; its handler calls exit, whose handlers free memory and flush files, and the
 * report is asked for.
 * Failure: a hang, a crash, a second report.
 */
/* env: TIERMALLOC_REPORT=exit TIERMALLOC_REPORT_FILE=$TMPDIR/%p.report */
#include "probe.h"

static void *kept[1000];

static void on_term(int sig)
{
	(void)sig;
	exit(0);
}

static void on_exit_free(void)
{
	for (size_t i = 0; i < 1000; i++) {
		free(kept[i]);
		kept[i] = malloc(i);
	}
}

static void child(int ready)
{
	uint64_t seed = (uint64_t)getpid();

	probe_limit(10);
	signal(SIGTERM, on_term);
	atexit(on_exit_free);
	FILE *f = fopen("/dev/null", "w");
	probe_require(f != NULL && fputs("buffered", f) >= 0, "no /dev/null");
	ssize_t n = write(ready, "", 1);
	(void)n;
	for (int i = 0; i < 3000 + (int)(seed % 3000); i++) {
		size_t k = probe_random(&seed) % 1000;
		void *p = kept[k];
		kept[k] = NULL; /* the exit handler must not see it any more */
		free(p);
		kept[k] = malloc(1 + probe_random(&seed) % 30000);
	}
	exit(0); /* the signal may come now, too */
}

int main(void)
{
	uint64_t seed = 19;
	int ends[2];
	char c;

	for (int round = 0; round < 200; round++) {
		probe_require(pipe(ends) == 0, "no pipe");
		pid_t pid = fork();
		if (pid == 0)
			child(ends[1]);
		ssize_t n = read(ends[0], &c, 1);
		struct timespec t = {0, probe_random(&seed) % 2000000};
		nanosleep(&t, NULL);
		kill(pid, SIGTERM);
		probe_child_ok(pid, 10000, "exit from SIGTERM");
		close(ends[0]);
		close(ends[1]);
		probe_require(n == 1, "the child did not start");
	}
	return 0;
}
