/* SPDX-License-Identifier: MIT */
/*
 * H66: a signal handler leaves malloc or free by siglongjmp, at each instruction of their common path in
 * turn. The thread goes on, however much it allocates afterwards, and its older blocks stay its own.
 * Failure: no memory, once what there is for signal handlers is used up, or overlapping blocks.
 */
#include "probe.h"

#if defined(__x86_64__)
#include <setjmp.h>
#include <ucontext.h>

enum { MOST = 60, SMALL = 20000, LARGE = 100, SMALL_BYTES = 120, LARGE_BYTES = 20000 };
static sigjmp_buf out;
static volatile int left;
static unsigned char *small[SMALL], *large[LARGE];

static void stop(int signal, siginfo_t *info, void *context)
{
	ucontext_t *u = context;

	(void)signal;
	(void)info;
	if (--left == 0)
		siglongjmp(out, 1);
	u->uc_mcontext.gregs[REG_EFL] |= 0x100;
}

/* False: it was at its end before. */
static bool jump_out_after(int instructions)
{
	void *(*volatile take)(size_t) = malloc;
	void (*volatile give)(void *) = free;

	left = instructions;
	if (sigsetjmp(out, 1) != 0)
		return true;
	__asm__ volatile(
		"sub $128, %%rsp\n\tpushf\n\torl $0x100, (%%rsp)\n\tpopf\n\tadd $128, %%rsp" ::
			: "memory", "cc");
	give(take(32));
	__asm__ volatile(
		"sub $128, %%rsp\n\tpushf\n\tandl $0xfffffeff, (%%rsp)\n\tpopf\n\tadd $128, %%rsp" ::
			: "memory", "cc");
	return false;
}

static void allocate_much(int round)
{
	for (int i = 0; i < SMALL; i++) {
		small[i] = malloc(SMALL_BYTES);
		probe_require(small[i] != NULL, "jump %d: no memory for small block %d", round, i);
		memset(small[i], i % 251, SMALL_BYTES);
	}
	for (int i = 0; i < LARGE; i++) {
		large[i] = malloc(LARGE_BYTES);
		probe_require(large[i] != NULL, "jump %d: no memory for block %d", round, i);
		memset(large[i], i, LARGE_BYTES);
	}
	for (int i = 0; i < SMALL; i++) {
		probe_require(small[i][0] == i % 251 && small[i][SMALL_BYTES - 1] == i % 251,
			      "jump %d: small block %d was overwritten", round, i);
		free(small[i]);
	}
	for (int i = 0; i < LARGE; i++) {
		probe_require(large[i][0] == i && large[i][LARGE_BYTES - 1] == i,
			      "jump %d: block %d was overwritten", round, i);
		free(large[i]);
	}
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = stop, .sa_flags = SA_SIGINFO | SA_NODEFER};
	unsigned char *old[50];
	int round = 0;

	probe_limit(100);
	for (int i = 0; i < 50; i++) {
		old[i] = malloc((size_t)i * 100 + 1);
		memset(old[i], i, (size_t)i * 100 + 1);
	}
	sigaction(SIGTRAP, &action, NULL);
	free(malloc(32));
	while (round < MOST && jump_out_after(round + 1)) {
		round++;
		allocate_much(round);
		free(malloc(32));
	}
	probe_require(round > 30, "only %d instructions", round);
	for (int i = 0; i < 50; i++) {
		probe_require(old[i][0] == i && old[i][i * 100] == i, "old block %d", i);
		free(old[i]);
	}
	probe_visit_allocator(3);
	return 0;
}
#else
int main(void)
{
	probe_skip("x86-64 only");
}
#endif
