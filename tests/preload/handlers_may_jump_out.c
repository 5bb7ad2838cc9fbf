/* SPDX-License-Identifier: MIT */
/*
 * H66: a signal handler leaves malloc or free by siglongjmp, at each instruction of their common path in
 * turn. The thread goes on, however much it allocates afterwards, and its older blocks stay its own.
 * Failure: no memory, once what there is for signal handlers is used up, or overlapping blocks.
 */
#include "trap.h"

#if defined(__x86_64__)

enum { MOST = 60, SMALL = 20000, LARGE = 100, SMALL_BYTES = 120, LARGE_BYTES = 20000 };
static unsigned char *small[SMALL], *large[LARGE];

/* False: it was at its end before. */
static bool jump_out_after(int instructions)
{
	void *(*volatile take)(size_t) = malloc;
	void (*volatile give)(void *) = free;

	trap_left = instructions;
	if (sigsetjmp(trap_out, 1) != 0)
		return true;
	trap_begin();
	give(take(32));
	trap_end();
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
	unsigned char *old[50];
	int round = 0;

	probe_limit();
	for (int i = 0; i < 50; i++) {
		old[i] = malloc((size_t)i * 100 + 1);
		memset(old[i], i, (size_t)i * 100 + 1);
	}
	trap_jump_install();
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
