/* SPDX-License-Identifier: MIT */
/*
 * H53: a program that holds a third of the memory that it may have, in blocks of many sizes, is never refused
 * one; and a block that shrinks can always stay where it is.
 * Failure: NULL, though two thirds of the limit are left; or realloc to a smaller size gives NULL.
 */
#include "probe.h"

#define BLOCKS 20000
#define ROUNDS 20000
#define FEW_BYTES (5200 * KIB) /* for 1.2 MiB in blocks of 600 sizes */

static const struct {
	int kind;
	size_t limit, longest, live;
} cases[] = {
	{RLIMIT_DATA, 8000 * KIB, 30000, 2400 * KIB},
	{RLIMIT_DATA, 10000 * KIB, 1000, 5500 * KIB},
	{RLIMIT_DATA, 10000 * KIB, 30000, 3000 * KIB},
	{RLIMIT_DATA, 10000 * KIB, 300000, 2700 * KIB},
	{RLIMIT_DATA, 24000 * KIB, 30000, 10000 * KIB},
	{RLIMIT_AS, 40000 * KIB, 30000, 16000 * KIB},
	{RLIMIT_AS, 40000 * KIB, 300000, 16000 * KIB},
};
#define CASES (int)(sizeof(cases) / sizeof(cases[0]))

static char *block[BLOCKS];
static size_t bytes_of[BLOCKS];

static size_t random_bytes(unsigned *seed, size_t longest)
{
	size_t bytes = 1 + (size_t)rand_r(seed) % longest;

	return rand_r(seed) % 2 ? bytes : 1 + bytes % 400;
}

static void churn(int number)
{
	size_t live = 0, limit = cases[number].live;
	unsigned seed = 1;
	int n = 0;

	for (int i = 0; i < ROUNDS; i++) {
		size_t want = random_bytes(&seed, cases[number].longest);

		while (n > 0 && (live + want > limit || n == BLOCKS)) {
			int k = rand_r(&seed) % n;

			probe_require(block[k][0] == (char)bytes_of[k] &&
					      block[k][bytes_of[k] - 1] == (char)bytes_of[k],
				      "case %d: a block of %zu bytes changed", number, bytes_of[k]);
			free(block[k]);
			live -= bytes_of[k];
			n--;
			block[k] = block[n];
			bytes_of[k] = bytes_of[n];
		}
		block[n] = malloc(want);
		probe_require(block[n] != NULL, "case %d: no %zu bytes while %zu live", number,
			      want, live);
		memset(block[n], (int)want, want);
		bytes_of[n++] = want;
		live += want;
	}
	/* until there is no more */
	while (n < BLOCKS && (block[n] = malloc(40000)) != NULL)
		bytes_of[n++] = 40000;
	for (int k = 0; k < n; k++) {
		char *shorter = realloc(block[k], bytes_of[k] / 3 + 1);

		probe_require(shorter != NULL, "case %d: %zu bytes don't shrink", number,
			      bytes_of[k]);
		block[k] = shorter;
	}
	for (int k = 0; k < n; k++)
		free(block[k]);
}

/* A block of each of many sizes. */
static void grow(void)
{
	for (size_t bytes = 1; bytes < 4200; bytes += 7) {
		char *p = malloc(bytes);

		probe_require(p != NULL, "no %zu bytes while %zu live", bytes, bytes * bytes / 14);
		memset(p, 1, bytes);
	}
}

int main(int argc, char **argv)
{
	probe_limit();
	if (argc > 1) {
		if (atoi(argv[1]) < CASES)
			churn(atoi(argv[1]));
		else
			grow();
		return 0;
	}
	for (int i = 0; i <= CASES; i++) {
		pid_t child = fork();
		int status;

		if (child == 0) {
			size_t bytes = i < CASES ? cases[i].limit : FEW_BYTES;
			struct rlimit limit = {bytes, bytes};
			char number[12];

			snprintf(number, sizeof(number), "%d", i);
			probe_require(setrlimit(i < CASES ? cases[i].kind : RLIMIT_DATA, &limit) ==
					      0,
				      "no limit: %s", strerror(errno));
			execl("/proc/self/exe", argv[0], number, (char *)NULL);
			probe_end(1, "wrong: cannot run again: %s", strerror(errno));
		}
		probe_require(waitpid(child, &status, 0) == child && status == 0,
			      "case %d: status %x", i, (unsigned)status);
	}
	return 0;
}
