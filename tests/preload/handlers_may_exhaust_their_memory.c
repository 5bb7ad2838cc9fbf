/* SPDX-License-Identifier: MIT */
/* env: TIERMALLOC_LEDGER=off TIERMALLOC_RULES="symbol=weights -> tier=persistent" */
/* build: -rdynamic */
/*
 * H66: a signal handler in the middle of malloc keeps so much that what there is for handlers is used up,
 * and returns. Handlers of the same thread that come at later instructions of the same malloc allocate.
 * Failure: one waits for a lock that the interrupted malloc holds (a hang), or blocks overlap.
 */
#include "trap.h"

#if defined(__x86_64__)

enum { KEPT = 4096, KEPT_BYTES = 60000, BYTES = 5000, STEPS = 1500 };
static unsigned char *kept[KEPT];
static volatile int steps, taken, refused;
static volatile bool used_up;

#define KEEP(p) __asm__ volatile("" : "+r"(p)::"memory")

void *weights(size_t size);

__attribute__((noinline)) void *weights(size_t size)
{
	void *p = malloc(size);

	KEEP(p);
	return p;
}

static void use_up(void)
{
	for (int i = 0; i < KEPT; i++) {
		kept[i] = malloc(KEPT_BYTES);
		if (kept[i] == NULL)
			return;
		memset(kept[i], 1, KEPT_BYTES);
	}
}

static void stop(int signal, siginfo_t *info, void *context)
{
	unsigned char *p;

	(void)signal;
	(void)info;
	trap_again(context, ++steps < STEPS);
	if (steps < 100)
		return;
	if (!used_up) {
		used_up = true;
		use_up();
	}
	p = weights(BYTES);
	if (p == NULL) {
		refused++;
		return;
	}
	memset(p, 2, BYTES);
	free(p);
	taken++;
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = stop, .sa_flags = SA_SIGINFO};
	unsigned char *p;

	probe_limit();
	sigaction(SIGTRAP, &action, NULL);
	free(weights(3000));
	trap_begin();
	p = weights(40000);
	trap_end();
	probe_require(p != NULL, "no block");
	memset(p, 3, 40000);
	for (int i = 0; i < KEPT && kept[i] != NULL; i++) {
		probe_require(kept[i][0] == 1 && kept[i][KEPT_BYTES - 1] == 1, "block %d", i);
		free(kept[i]);
	}
	probe_require(taken > 0, "none of %d handlers got memory", steps);
	probe_visit_allocator(3);
	return 0;
}
#else
int main(void)
{
	probe_skip("x86-64 only");
}
#endif
