/* SPDX-License-Identifier: MIT */
/*
 * TIERMALLOC_GUARD=sample: sampled blocks are used, resized and freed as others are, by all threads
 * and in children, and a second free of one is counted.
 */
/* env: TIERMALLOC_GUARD=sample=3 TIERMALLOC_REPORT=exit */
/* stderr: .*double frees +[1-3]  ignored */
#include <malloc.h>
#include <pthread.h>

#include "probe.h"

static void *work(void *context)
{
	for (uint64_t i = 0; i < 300; i++)
		probe_visit_allocator(i + (uintptr_t)context);
	return NULL;
}

int main(void)
{
	pthread_t thread[4];
	char *p[3];

	probe_limit();
	for (uintptr_t i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, work, (void *)i);
	pid_t pid = fork();
	if (pid == 0) {
		work(NULL);
		_exit(0);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	probe_child_ok(pid, "child");
	for (int i = 0; i < 3; i++)
		p[i] = malloc(64);
	for (int i = 0; i < 3; i++) {
		probe_require(malloc_usable_size(p[i]) >= 64, "usable size");
		free(p[i]);
		__asm__ volatile("" : "+r"(p[i]) : : "memory");
		free(p[i]);
	}
	return 0;
}
