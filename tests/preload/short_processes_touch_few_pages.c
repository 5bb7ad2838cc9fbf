/* SPDX-License-Identifier: MIT */
/*
 * What a process of a few hundred microseconds pays for the preload is page faults: its code and
 * variables of the start lie together, and so does what a fork writes (attrs.h, start.ld). "true" takes
 * 10 more than without (16 in a debug build), of which 6 are the loader's for any library, and a fork 4
 * in parent and child; 32 and 24 when they lay scattered.
 */
#include "probe.h"
#include <limits.h>
#include <spawn.h>

enum { RUNS = 9, MOST = 20, FORKS = 50, MOST_OF_FORK = 8 };

static void fork_often(void)
{
	void *volatile p = malloc(100);

	for (int i = 0; i < FORKS; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		probe_child_ok(pid, "child");
	}
	free(p);
}

/* Of the process and what it forked. */
static long faults_of(const char *program, char **words, char **environment)
{
	long least = LONG_MAX;

	for (int i = 0; i < RUNS; i++) {
		struct rusage used;
		int status = 0;
		pid_t pid = -1;

		probe_require(posix_spawn(&pid, program, NULL, NULL, words, environment) == 0,
			      "no child: %s", strerror(errno));
		while (wait4(pid, &status, 0, &used) < 0 && errno == EINTR)
			;
		probe_require(status == 0, "a child's status is %#x", (unsigned)status);
		least = used.ru_minflt < least ? used.ru_minflt : least;
	}
	return least;
}

int main(int argc, char **argv)
{
	char name[] = "x", forks[] = "forks";
	char *true_words[] = {name, NULL}, *fork_words[] = {name, forks, NULL};
	char preload[4096];
	char *none[] = {NULL}, *ours[] = {preload, NULL};
	const char *library = getenv("LD_PRELOAD");

	(void)argv;
	probe_limit();
	if (argc > 1) {
		fork_often();
		return 0;
	}
	probe_require(library != NULL, "no LD_PRELOAD");
	snprintf(preload, sizeof(preload), "LD_PRELOAD=%s", library);
	long without = faults_of("/bin/true", true_words, none);
	long with = faults_of("/bin/true", true_words, ours);
	probe_require(with - without <= MOST, "%ld page faults, %ld without", with, without);
	without = faults_of("/proc/self/exe", fork_words, none);
	with = faults_of("/proc/self/exe", fork_words, ours);
	probe_require(with - without <= MOST_OF_FORK * FORKS + MOST,
		      "%d forks take %ld page faults, %ld without", FORKS, with, without);
	return 0;
}
