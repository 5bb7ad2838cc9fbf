/* SPDX-License-Identifier: MIT */
/*
 * A signal handler leaves malloc by siglongjmp and its thread ends without another allocation. Its memory,
 * its thread-local storage too, is unmapped; a heap that grows later looks at those of others.
 * Failure: a crash.
 */
#include "probe.h"

#if defined(__x86_64__)
#include <pthread.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { MOST = 60, KEPT = 20000, KEPT_BYTES = 120, STACK = 1 << 20, GROWTH = 100 << 20 };
static sigjmp_buf out;
static volatile int left;
static volatile bool inside;

static void stop(int signal, siginfo_t *info, void *context)
{
	ucontext_t *u = context;

	(void)signal;
	(void)info;
	if (--left == 0)
		siglongjmp(out, 1);
	u->uc_mcontext.gregs[REG_EFL] |= 0x100;
}

static void *end_after(void *instructions)
{
	void *(*volatile take)(size_t) = malloc;

	/* worth a look: more than a few spans */
	for (int i = 0; i < KEPT; i++)
		probe_require(take(KEPT_BYTES) != NULL, "no memory");
	left = (int)(intptr_t)instructions;
	if (sigsetjmp(out, 1) != 0) {
		inside = true;
		return NULL;
	}
	__asm__ volatile(
		"sub $128, %%rsp\n\tpushf\n\torl $0x100, (%%rsp)\n\tpopf\n\tadd $128, %%rsp" ::
			: "memory", "cc");
	(void)take(32);
	__asm__ volatile(
		"sub $128, %%rsp\n\tpushf\n\tandl $0xfffffeff, (%%rsp)\n\tpopf\n\tadd $128, %%rsp" ::
			: "memory", "cc");
	return NULL;
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = stop, .sa_flags = SA_SIGINFO | SA_NODEFER};
	int count = 0;

	probe_limit(100);
	sigaction(SIGTRAP, &action, NULL);
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
