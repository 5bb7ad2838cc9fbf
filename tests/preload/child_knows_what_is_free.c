/* SPDX-License-Identifier: MIT */
/*
 * H20 H45: a forked child frees a block again that its parent had freed. The parent keeps a ledger, whose
 * entries a child does not share: it has to find out by itself what is free, also what other threads
 * freed, what threads that are gone left behind, and what was parked when pages were given back.
 * Failure: a block is given to two callers, or the child crashes on a list that leads back to itself.
 */
#include "probe.h"

#include <malloc.h>
#include <pthread.h>

#pragma weak _Fork

enum { GROUP = 60, BLOCKS = 300, WAYS = 5 };
static const size_t sizes[] = {24, 500, 1500, 5000, 40000, 62000, 100000, 3000000};
#define SIZES (sizeof(sizes) / sizeof(*sizes))

static void *group[GROUP];
static size_t bytes;
static int way;

static void *hide(void *p)
{
	__asm__ volatile("" : "+r"(p) : : "memory");
	return p;
}

static void make(void)
{
	for (int i = 0; i < GROUP; i++)
		group[i] = malloc(bytes);
}

static void free_second_third(void)
{
	for (int i = GROUP / 3; i < GROUP / 3 * 2; i++)
		free(group[i]);
}

static void *in_thread(void *arg)
{
	((void (*)(void))arg)();
	return NULL;
}

static void elsewhere(void (*run)(void))
{
	pthread_t thread;
	void *arg;

	memcpy(&arg, &run, sizeof(arg));
	probe_require(pthread_create(&thread, NULL, in_thread, arg) == 0, "no thread");
	pthread_join(thread, NULL);
}

static void prepare(void)
{
	if (way == 1 || way == 2)
		elsewhere(make);
	else
		make();
	if (way == 2 || way == 3)
		elsewhere(free_second_third);
	else
		free_second_third();
	if (way == 4)
		malloc_trim(0);
}

static void child(void)
{
	static unsigned char *block[BLOCKS];

	signal(SIGALRM, SIG_DFL);
	probe_limit();
	for (int i = GROUP / 3; i < GROUP / 3 * 2; i += 3)
		free(hide(group[i]));
	if (way % 2 == 0)
		(void)!realloc(hide(group[GROUP / 2 - 1]), bytes);
	int n = bytes > 1 << 20 ? 8 : BLOCKS;
	for (int i = 0; i < n; i++) {
		block[i] = malloc(bytes);
		probe_require(block[i] != NULL, "malloc(%zu) is NULL", bytes);
		memset(block[i], i % 251, bytes);
	}
	for (int i = 0; i < n; i++) {
		for (size_t at = 0; at < bytes; at += 8)
			probe_require(block[i][at] == i % 251,
				      "way %d: block %d of %zu overlaps another", way, i, bytes);
		free(block[i]);
		free(hide(block[i]));
	}
	for (int i = 0; i < GROUP / 3; i++)
		free(group[i]);
	probe_visit_allocator(7);
	_exit(0);
}

static pid_t start(int raw)
{
	if (!raw)
		return fork();
	return _Fork != NULL ? _Fork() : fork();
}

int main(void)
{
	char *much = malloc(16 << 20);

	probe_limit();
	memset(much, 1, 16 << 20);
	for (unsigned i = 0; i < SIZES * WAYS * 2; i++) {
		bytes = sizes[i % SIZES];
		way = (int)(i / SIZES) % WAYS;
		prepare();
		pid_t pid = start(i / SIZES / WAYS);
		if (pid == 0)
			child();
		probe_child_ok(pid, "child");
		for (int k = 0; k < GROUP; k++)
			if (k < GROUP / 3 || k >= GROUP / 3 * 2)
				free(group[k]);
	}
	return 0;
}
