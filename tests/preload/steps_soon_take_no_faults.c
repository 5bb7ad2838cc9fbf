/* SPDX-License-Identifier: MIT */
/*
 * A program that lays the same blocks out in another order in every step finds everything resident
 * after a few of them: its memory, and the library's own tables. Judged is the middle step: the kernel
 * may take a page away from anybody at any time.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#define BLOCKS 21
#define STEPS 25
#define SETTLED 6 /* steps */

static uint64_t seed = 88172645463325252u;

static size_t below(size_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (size_t)(seed % n);
}

static long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt;
}

static void step(const size_t *sizes)
{
	size_t order[BLOCKS];
	char *block[BLOCKS];

	for (size_t i = 0; i < BLOCKS; i++)
		order[i] = i;
	for (size_t i = BLOCKS - 1; i > 0; i--) {
		size_t k = below(i + 1), t = order[i];

		order[i] = order[k];
		order[k] = t;
	}
	for (size_t i = 0; i < BLOCKS; i++) {
		block[i] = malloc(sizes[order[i]]);
		if (block[i] == NULL)
			abort();
		for (size_t at = 0; at < sizes[order[i]]; at += 4096)
			((volatile char *)block[i])[at] = 1;
	}
	for (size_t i = BLOCKS; i-- > 0;)
		free(block[i]);
}

int main(void)
{
	size_t sizes[BLOCKS];
	long late = 0, most = 0;

	/* 64 KiB to 70 MiB, 230 MiB in all */
	sizes[0] = 65664;
	for (size_t i = 1; i < BLOCKS; i++)
		sizes[i] = sizes[i - 1] * 142 / 100 & ~(size_t)63;
	for (int i = 0; i < STEPS; i++) {
		long before = faults();

		step(sizes);
		before = faults() - before;
		if (i >= SETTLED && before != 0)
			late++;
		if (i >= SETTLED && before > most)
			most = before;
	}
	printf("%ld of %d steps took faults, %ld at most\n", late, STEPS - SETTLED, most);
	return late > (STEPS - SETTLED) / 4;
}
