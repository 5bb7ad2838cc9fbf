/* SPDX-License-Identifier: MIT */
/*
 * guard= of rules guards the blocks that the rule is about, of any size, and no others: what is written
 * behind them is told, and their rule's tier holds; the others are what they are without guards.
 * Failure: a mistake that is not told or told elsewhere, blocks of others that are treated as guarded.
 */
/* env: TIERMALLOC_RULES='size=100 -> guard=all; size=1M -> guard=all tier=temporary; size=5000 -> guard=sample; thread=other* size=300 -> guard=all; size>=1 -> guard=off' TIERMALLOC_REPORT=exit */
/* stderr: tiermalloc: written behind the end: a block of 100 bytes at 0x[0-9a-f]+ */
/* stderr: tiermalloc: written behind the end: a block of 300 bytes at 0x[0-9a-f]+ */
/* stderr: tiermalloc: written behind the end: a block of 1048576 bytes at 0x[0-9a-f]+ */
/* stderr: .*overruns +3  found by guards */
/* stderr: .*double frees +1  ignored */
#include <malloc.h>
#include <pthread.h>
#include <sys/prctl.h>

#include "probe.h"
#include "shim/tiermalloc.h"

static char *hide(char *p)
{
	__asm__ volatile("" : "+r"(p) : : "memory");
	return p;
}

static void overrun(size_t size)
{
	char *p = malloc(size);

	memset(p, 1, size);
	hide(p)[size] = 1;
	free(p);
}

/* The slot's own rest is nobody's business there. */
static void spill(size_t size)
{
	char *p = malloc(size);

	probe_require(malloc_usable_size(p) > size, "%zu: guarded", size);
	memset(hide(p), 1, malloc_usable_size(p));
	free(p);
}

/* A thread that gets its name late. */
static void *other(void *unused)
{
	spill(300);
	prctl(PR_SET_NAME, "other one");
	overrun(300);
	return unused;
}

static void samples(void)
{
	unsigned found = 0;

	for (int i = 0; i < 5000; i++) {
		char *p = malloc(5000);

		found += malloc_usable_size(p) == 5000;
		memset(p, 1, 5000);
		free(p);
	}
	probe_require(found >= 4 && found <= 6, "%u of 5,000 sampled", found);
}

static void plain_blocks_grow_in_place(void)
{
	char *p = malloc(3 * MIB), *grown;
	unsigned moves = 0;

	for (size_t mib = 4; mib < 64; mib++, p = grown) {
		grown = realloc(p, mib * MIB);
		moves += grown != p;
	}
	probe_require(moves < 8, "%u moves", moves);
	free(p);
}

int main(void)
{
	struct tiermalloc_stats before = {.struct_bytes = sizeof(before)}, after = before;
	pthread_t thread;
	char *p;

	probe_limit();
	overrun(100);
	spill(99);
	spill(300);
	pthread_create(&thread, NULL, other, NULL);
	pthread_join(thread, NULL);
	samples();
	plain_blocks_grow_in_place();

	tiermalloc_stats(&before);
	p = malloc(MIB);
	tiermalloc_stats(&after);
	probe_require(after.live_bytes[TIERMALLOC_TEMPORARY] >=
			      before.live_bytes[TIERMALLOC_TEMPORARY] + MIB,
		      "the rule's tier does not hold");
	hide(p)[MIB] = 1;
	free(p);

	p = calloc(10, 10);
	for (int i = 0; i < 100; i++)
		probe_require(p[i] == 0, "not zero");
	p = realloc(p, 120);
	probe_require(malloc_usable_size(p) > 120 && p[99] == 0, "guarded though no rule says so");
	p = realloc(p, 100);
	probe_require(malloc_usable_size(p) == 100, "not guarded though a rule says so");
	free(p);
	free(hide(p));

	probe_require(tiermalloc_set_tier("size=77 -> guard=all") == 0, "not added");
	return 0;
}
