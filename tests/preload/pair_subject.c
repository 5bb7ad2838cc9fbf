/* SPDX-License-Identifier: MIT */
/* run: none */
/* Of tiers_cost_little: so many pairs of malloc and free of one size. usage: pair_subject PAIRS BYTES */
#include <stdlib.h>

static void *volatile seen;

int main(int argc, char **argv)
{
	long pairs = argc > 2 ? atol(argv[1]) : 0;
	size_t bytes = argc > 2 ? (size_t)atol(argv[2]) : 0;

	for (long i = 0; i < pairs; i++) {
		seen = malloc(bytes);
		free(seen);
	}
	return 0;
}
