/* SPDX-License-Identifier: MIT */
/*
 * The program of children_keep_small_ledgers.py: children_subject CHILDREN KEPT. Each child allocates KEPT
 * blocks that it keeps and as many that it frees, frees some of its parent's, and ends: killed, by _exit or
 * by exit, in turn. Prints the process id of each.
 */
/* run: none */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void *volatile inherited[5000];
static void *volatile kept[1000];

static __attribute__((noinline)) void child_work(int count)
{
	for (int i = 0; i < count; i++) {
		void *volatile gone = malloc((size_t)(i * 37 % 3000 + 1));
		kept[i] = malloc((size_t)(i * 53 % 2000 + 8));
		free(gone);
		free(inherited[i]);
	}
}

int main(int argc, char **argv)
{
	int children = argc > 2 ? atoi(argv[1]) : 0, count = argc > 2 ? atoi(argv[2]) : 0;

	for (int i = 0; i < 5000; i++)
		inherited[i] = malloc((size_t)(i % 700 + 16));
	for (int i = 0; i < children; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			child_work(count);
			if (i % 3 == 0)
				kill(getpid(), SIGKILL);
			if (i % 3 == 1)
				_exit(0);
			exit(0);
		}
		waitpid(pid, NULL, 0);
		printf("%d\n", (int)pid);
		fflush(stdout);
	}
	return 0;
}
