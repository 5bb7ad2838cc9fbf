/* SPDX-License-Identifier: MIT */
/*
 * H46: while a ledger is kept, the entries of blocks are shared with the child of a raw fork until
 * that allocates. What the parent does to its blocks meanwhile is nothing to the child, be it made by
 * the thread that allocates or by one that never did.
 * Failure: the child's realloc finds its block free, or parent and child change each other's entries.
 */
#include "probe.h"
#include <pthread.h>
#include <sys/syscall.h>

enum { BLOCKS = 200 };
static unsigned char *block[BLOCKS];

static size_t bytes_of(unsigned i)
{
	return 24 + i * 40;
}

static void live_as_child(int wait_for)
{
	char byte;

	probe_limit();
	probe_require(read(wait_for, &byte, 1) == 1, "the parent is gone");
	for (unsigned i = 0; i < BLOCKS; i++) {
		if (i % 2 == 0)
			block[i] = realloc(block[i], 7 + i);
		probe_require(block[i] != NULL && probe_filled(block[i], 7, i),
			      "block %u of the child is not its own", i);
	}
	for (unsigned i = 0; i < BLOCKS; i++)
		free(block[i]);
	for (int i = 0; i < 30; i++)
		probe_visit_allocator((unsigned)i);
	_exit(0);
}

/* Makes a child that looks at its blocks only after the parent has done with them. */
static void *have_a_child(void *arg)
{
	int pipe_ends[2];

	probe_require(pipe(pipe_ends) == 0, "no pipe");
	pid_t pid = (pid_t)syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L);
	if (pid == 0)
		live_as_child(pipe_ends[0]);
	if (arg == NULL) /* this thread has a heap */
		for (unsigned i = 0; i < BLOCKS; i++) {
			free(block[i]);
			block[i] = malloc(bytes_of(i));
			memset(block[i], 0xee, bytes_of(i));
			if (i % 3 == 0) {
				free(block[i]);
				block[i] = NULL;
			}
		}
	probe_require(write(pipe_ends[1], "", 1) == 1, "no write");
	probe_child_ok(pid, arg == NULL ? "a thread with a heap" : "one without");
	close(pipe_ends[0]);
	close(pipe_ends[1]);
	return NULL;
}

static void fill_blocks(void)
{
	for (unsigned i = 0; i < BLOCKS; i++) {
		free(block[i]);
		block[i] = malloc(bytes_of(i));
		probe_fill(block[i], bytes_of(i), i);
	}
}

int main(void)
{
	pthread_t t;

	probe_limit();
	/* from 4 MiB on there is a ledger */
	for (int i = 0; i < 100; i++)
		memset(malloc(100000), 1, 100000);
	fill_blocks();
	have_a_child(NULL);
	fill_blocks();
	pthread_create(&t, NULL, have_a_child, block);
	pthread_join(t, NULL);
	fill_blocks();
	for (int i = 0; i < 30; i++)
		probe_visit_allocator((unsigned)i);
	for (unsigned i = 0; i < BLOCKS; i++)
		free(block[i]);
	return 0;
}
