/* SPDX-License-Identifier: MIT */
/*
 * H47: a child made with vfork or CLONE_VM works in the parent's memory under another pid, with
 * the parent's thread-local state, and ends with _exit. It is one more user of the same heap, not
 * a forked process: what it leaves behind stays valid, and nothing is reset or reported for it.
 * Failure: blocks lost or handed out twice after the child ended, a hang, or a second report.
 */
/* env: TIERMALLOC_REPORT=exit TIERMALLOC_REPORT_FILE=$TMPDIR/%p.report */
#include "probe.h"
#include <dirent.h>
#include <pthread.h>
#include <sched.h>

enum { WORKERS = 4, BLOCKS = 200, ROUNDS = 150 };
static unsigned char *block[BLOCKS];
static size_t bytes_of[BLOCKS];
static _Atomic bool stop;

static void *work(void *arg)
{
	uint64_t seed = (uintptr_t)arg + 1;

	while (!stop) {
		void *p = malloc(1 + probe_random(&seed) % 100000);
		void *q = malloc(1 + probe_random(&seed) % 1000);
		free(p);
		free(q);
	}
	return NULL;
}

/* Replaces every second block, so that frees and allocations cross over from child to parent. */
static void use_heap(unsigned round, unsigned who)
{
	uint64_t seed = round * 2 + who + 1;

	for (unsigned i = who; i < BLOCKS; i += 2) {
		free(block[i]);
		bytes_of[i] = i % 20 < 2 ? (1 << 20) + i : 1 + probe_random(&seed) % 20000;
		block[i] = malloc(bytes_of[i]);
		probe_require(block[i] != NULL, "malloc(%zu) is NULL", bytes_of[i]);
		probe_fill(block[i], bytes_of[i] < 64 ? bytes_of[i] : 64, i);
	}
}

static int child(void *round)
{
	use_heap((unsigned)(uintptr_t)round, 1);
	_exit(0);
}

static pid_t start(unsigned round, unsigned char *stack_top)
{
	if (round % 3 == 0) {
		pid_t pid = vfork();
		if (pid == 0)
			child((void *)(uintptr_t)round);
		return pid;
	}
	int flags = round % 3 == 1 ? CLONE_VM | CLONE_VFORK | SIGCHLD : CLONE_VM | SIGCHLD;
	return clone(child, stack_top, flags, (void *)(uintptr_t)round);
}

int main(void)
{
	static unsigned char stack[256 * 1024] __attribute__((aligned(16)));
	pthread_t t[WORKERS];
	int status, reports = 0;

	probe_limit();
	for (uintptr_t i = 0; i < WORKERS; i++)
		pthread_create(&t[i], NULL, work, (void *)i);
	for (unsigned round = 0; round < ROUNDS; round++) {
		use_heap(round, 0);
		pid_t pid = start(round, stack + sizeof(stack));
		probe_require(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0,
			      "round %u: child's status is %#x", round, (unsigned)status);
		for (unsigned i = 0; i < BLOCKS; i++)
			probe_require(
				probe_filled(block[i], bytes_of[i] < 64 ? bytes_of[i] : 64, i),
				"round %u: block %u was overwritten", round, i);
	}
	stop = true;
	for (int i = 0; i < WORKERS; i++)
		pthread_join(t[i], NULL);
	DIR *dir = opendir(getenv("TMPDIR") ? getenv("TMPDIR") : ".");
	for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;)
		reports += strstr(e->d_name, ".report") != NULL;
	probe_require(reports == 0, "%d reports were written for children", reports);
	return 0;
}
