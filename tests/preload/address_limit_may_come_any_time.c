/* SPDX-License-Identifier: MIT */
/*
 * H53, log 13, 14, 15: RLIMIT_AS of 8 GiB, 1 GiB and 256 MiB, set before the program starts or in
 * the middle of it, and one 16 MiB above what is in use. Threads start, 10,000 rounds of malloc
 * and free succeed, what cannot fit is NULL with ENOMEM, and the next smaller request succeeds.
 * Failure: abort, NULL for what fits, or an address space reserved so early that nothing fits.
 */
#include "probe.h"
#include <pthread.h>
#include <sys/mman.h>

static void *thread(void *arg)
{
	probe_visit_allocator(1);
	return arg;
}

static void set_limit(size_t bytes)
{
	struct rlimit limit = {bytes, bytes};

	probe_require(setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit: %s", strerror(errno));
}

static void work(size_t limit, bool threads)
{
	uint64_t seed = limit;
	size_t used = 0;
	pthread_t t;
	void *list = NULL;

	errno = 0;
	probe_require(malloc(limit) == NULL && errno == ENOMEM, "malloc(limit) is not ENOMEM");
	for (int i = 0; threads && i < 8; i++) {
		probe_require(pthread_create(&t, NULL, thread, NULL) == 0, "no thread");
		pthread_join(t, NULL);
	}
	for (int i = 0; i < 10000; i++) {
		char *p = malloc(4 * MIB);
		probe_require(p != NULL, "round %d: malloc(4 MiB) is NULL", i);
		p[i] = 1;
		char *q = malloc(1 + probe_random(&seed) % 100000);
		probe_require(q != NULL, "round %d: a small malloc is NULL", i);
		q[0] = 1;
		free(p);
		free(q);
	}
	for (size_t step = 8 * MIB; step >= 4096; step /= 2) /* up to the limit */
		for (void **p; used < limit && (p = malloc(step)) != NULL; used += step) {
			*p = list;
			list = p;
		}
	errno = 0;
	if (used < limit)
		probe_require(malloc(64 * MIB) == NULL && errno == ENOMEM, "no ENOMEM when full");
	while (list != NULL) {
		void *next = *(void **)list;
		free(list);
		list = next;
	}
	void *p = malloc(4 * MIB);
	probe_require(p != NULL, "malloc(4 MiB) is NULL after all was freed");
	free(p);
}

int main(int argc, char **argv)
{
	static const size_t limits[] = {8 * GIB, GIB, 256 * MIB};
	char mode[32];

	probe_limit();
	if (argc > 1) {
		work(strtoul(argv[1], NULL, 10), true);
		return 0;
	}
	for (size_t i = 0; i < 6; i++) {
		size_t limit = limits[i % 3];
		pid_t pid = fork();
		if (pid == 0 && i < 3) { /* before the start */
			set_limit(limit);
			snprintf(mode, sizeof(mode), "%zu", limit);
			execl("/proc/self/exe", argv[0], mode, (char *)NULL);
			_exit(127);
		} else if (pid == 0) { /* after some life */
			void *p[40];
			for (size_t k = 0; k < 40; k++)
				p[k] = malloc(MIB);
			probe_visit_allocator(3);
			set_limit(limit);
			for (size_t k = 0; k < 40; k++)
				free(p[k]);
			work(limit, true);
			_exit(0);
		}
		snprintf(mode, sizeof(mode), "%zu MiB %s", limit / MIB, i < 3 ? "before" : "later");
		probe_child_ok(pid, mode);
	}
	size_t limit = (size_t)probe_status(0, "VmSize") * KIB + 16 * MIB;
	set_limit(limit);
	work(limit, false);
	return 0;
}
