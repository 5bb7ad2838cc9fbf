/* SPDX-License-Identifier: MIT */
/*
 * A forked child loses the entries that were its parent's ledger's. Of blocks of an arena it knows all the
 * same where objects begin and which are free: frees of addresses inside an object, of ones that the
 * parent had freed and second ones are refused there, too.
 * Failure: such a free writes into the object, or memory is handed out twice.
 */
#include "claim.h"

#include <sys/wait.h>

#include "shim/tiermalloc.h"

#define BATCH 100
#define BYTES 16000

static unsigned char *block[2 * BATCH], *gone[BATCH];

static void __attribute__((noinline)) * temporary(size_t bytes)
{
	void *volatile p = malloc(bytes);

	return p;
}

static void take(int blocks)
{
	for (int i = 0; i < blocks; i++) {
		block[i] = temporary(BYTES);
		memset(block[i], i, BYTES);
	}
}

static void check(int blocks)
{
	for (int i = 0; i < blocks; i++)
		for (int k = 0; k < BYTES; k++)
			claim(block[i][k] == i, "byte %d of block %d is %d", k, i, block[i][k]);
}

static void give(int blocks)
{
	for (int i = 0; i < blocks; i++)
		free(block[i]);
}

static unsigned long long in_arenas(void)
{
	struct tiermalloc_stats stats = {.struct_bytes = sizeof(stats)};

	tiermalloc_stats(&stats);
	return stats.live_bytes[TIERMALLOC_TEMPORARY];
}

static void wrong_frees(void)
{
	for (int i = 0; i < BATCH; i++) {
		free(block[i] + 256 * (1 + i % 50));
		free(gone[i]);
	}
	check(BATCH);
	give(BATCH);
	give(BATCH);
	for (int i = 0; i < 3; i++) {
		take(2 * BATCH);
		check(2 * BATCH);
		give(2 * BATCH);
	}
}

int main(void)
{
	int status = 0;

	for (int i = 0; i < 16; i++)
		memset(temporary(1 << 20), 1, 1 << 20);
	/* until it is known that they are temporary */
	for (int step = 0; step < 20000; step++) {
		tiermalloc_step();
		take(2 * BATCH);
		if (in_arenas() >= BATCH * BYTES)
			break;
		give(2 * BATCH);
	}
	claim(in_arenas() >= BATCH * BYTES, "%llu bytes in arenas", in_arenas());
	for (int i = 0; i < BATCH; i++) {
		gone[i] = block[BATCH + i];
		free(gone[i]);
	}
	pid_t pid = fork();
	if (pid == 0) {
		alarm(30);
		wrong_frees();
		_exit(claim_end());
	}
	waitpid(pid, &status, 0);
	claim(status == 0, "the child ended with %#x", (unsigned)status);
	check(BATCH);
	return claim_end();
}
