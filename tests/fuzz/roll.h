/* SPDX-License-Identifier: MIT */
/* roll: seeded draws and a claim that names the run in which it did not hold. */
#ifndef TESTS_FUZZ_ROLL_H
#define TESTS_FUZZ_ROLL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t state;
static uint64_t run;

static uint32_t roll(uint32_t below)
{
	state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (uint32_t)(state >> 33) % below;
}

static void must(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "run %llu: %s\n", (unsigned long long)run, what);
	exit(1);
}

#endif
