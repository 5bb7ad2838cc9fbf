/* SPDX-License-Identifier: MIT */
/*
 * TIERMALLOC_GUARD=all without abort: mistakes are told and counted and the program runs on, many
 * threads and sizes and a child together; what is right costs no complaint.
 */
/* env: TIERMALLOC_GUARD=all TIERMALLOC_REPORT=exit */
/* stderr: tiermalloc: written behind the end: a block of 60 bytes at 0x[0-9a-f]+ */
/* stderr: .*overruns +1  found by guards */
/* stderr: .*uses after free +1  found by guards */
/* stderr: .*double frees +1  ignored */
#include <malloc.h>
#include <pthread.h>

#include "probe.h"

static char *hide(char *p)
{
	__asm__ volatile("" : "+r"(p) : : "memory");
	return p;
}

static void *work(void *context)
{
	for (uint64_t i = 0; i < 300; i++)
		probe_visit_allocator(i + (uintptr_t)context);
	return NULL;
}

/* All alignments with sizes that are no multiple of them, the same memory again and again. */
static void aligned(void)
{
	void *p[2000];

	for (size_t round = 0, n = 0; round < 4; round++) {
		for (n = 0; n < 2000; n++) {
			size_t bytes = 1 + n * 37 % 20000;

			probe_require(posix_memalign(&p[n], (size_t)16 << n % 9, bytes) == 0,
				      "no memory");
			probe_require(malloc_usable_size(p[n]) == bytes, "usable size");
			memset(p[n], 1, bytes);
		}
		while (n-- > 0)
			free(p[n]);
	}
}

int main(void)
{
	pthread_t thread[4];
	char *p;

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

	aligned();
	p = malloc(60);
	probe_require(malloc_usable_size(p) == 60, "usable size");
	hide(p)[60] = 1;
	free(p);
	free(hide(p));
	p = malloc(70);
	free(p);
	hide(p)[3] = 1;
	return 0;
}
