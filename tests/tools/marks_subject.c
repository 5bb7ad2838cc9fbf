/* SPDX-License-Identifier: MIT */
/*
 * The program of leaks_are_told_by_marks.py: marks_subject SECONDS. A session each 5 ms leaves two
 * objects and begins twenty steps, of which every tenth leaves one of another site; a session's own
 * objects are freed.
 */
/* run: none */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "shim/tiermalloc.h"

static void *volatile keep;
static long sessions, steps;

__attribute__((noinline)) static void leave_by_session(void)
{
	void **p = malloc(120);

	*p = keep;
	keep = p;
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void leave_by_step(void)
{
	void **p = malloc(72);

	*p = keep;
	keep = p;
	__asm__ volatile("" ::: "memory");
}

static void serve(void)
{
	uint64_t session = tiermalloc_session_begin("s");
	void *state = malloc(9000);

	memset(state, 1, 9000);
	sessions++;
	for (int i = 0; i < 20; i++) {
		void *volatile scratch = malloc(300);

		free(scratch);
		tiermalloc_step();
		if (steps++ % 10 == 0)
			leave_by_step();
	}
	for (int i = 0; i < 2; i++)
		leave_by_session();
	free(state);
	tiermalloc_session_end(session);
}

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 1);

	if (!tiermalloc_session_begin)
		return 77;
	while (time(NULL) < end) {
		serve();
		usleep(5000);
	}
	printf("%ld %ld\n", sessions, steps);
	fflush(stdout);
	kill(getpid(), SIGKILL);
}
