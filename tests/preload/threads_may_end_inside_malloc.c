/* SPDX-License-Identifier: MIT */
/*
 * A signal handler leaves malloc by siglongjmp and its thread ends without another allocation. Its memory,
 * its thread-local storage too, is unmapped; a heap that grows later looks at those of others.
 * Failure: a crash.
 */
#include "trap.h"

#if defined(__x86_64__)
#include <pthread.h>
#include <sys/mman.h>

enum { MOST = 60, KEPT = 20000, KEPT_BYTES = 120, STACK = 1 << 20, GROWTH = 100 << 20 };
static volatile bool inside;

static void *end_after(void *instructions)
{
	void *(*volatile take)(size_t) = malloc;

	/* worth a look: more than a few spans */
	for (int i = 0; i < KEPT; i++)
		probe_require(take(KEPT_BYTES) != NULL, "no memory");
	trap_left = (int)(intptr_t)instructions;
	if (sigsetjmp(trap_out, 1) != 0) {
		inside = true;
		return NULL;
	}
	trap_begin();
	(void)take(32);
	trap_end();
	return NULL;
}

int main(void)
{
	int count = 0;

	probe_limit();
	trap_jump_install();
	do {
		char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				   -1, 0);
		pthread_attr_t attr;
		pthread_t thread;

		inside = false;
		pthread_attr_init(&attr);
		pthread_attr_setstack(&attr, stack, STACK);
		probe_require(pthread_create(&thread, &attr, end_after,
					     (void *)(intptr_t)(count + 1)) == 0,
			      "no thread");
		pthread_join(thread, NULL);
		munmap(stack, STACK);
		count++;
	} while (inside && count < MOST);
	probe_require(count > 10, "only %d instructions", count);
	for (size_t bytes = 0; bytes < GROWTH; bytes += 1000)
		probe_require(malloc(1000) != NULL, "no memory");
	probe_visit_allocator(3);
	return 0;
}
#else
int main(void)
{
	probe_skip("x86-64 only");
}
#endif
