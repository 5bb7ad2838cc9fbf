/* SPDX-License-Identifier: MIT */
/*
 * Slots of a listed size become resident once the first request came, in huge pages where the kernel
 * gives them, stay so while the program is idle and after malloc_trim, and cost neither a fault nor a
 * system call. What they can't serve takes the ordinary path. Failure: faults, memory that went back,
 * counts.
 */
/* env: TIERMALLOC_POOLS=768K*64@session,3M*2 TIERMALLOC_SESSION_DECAY=100ms TIERMALLOC_REPORT=exit */
/* stderr: tiermalloc .* report of process .*; pools exhausted 3 times */
/* stderr: .* *session +768 KiB +64 +257 +0 +2 +64 */
/* stderr: .* *any tier +3\.0 MiB +2 +2 +0 +1 +2 */
#include <malloc.h>

#include "probe.h"

#define COUNT 64
#define BYTES (768 * KIB)

static void *block[COUNT + 2];

static void take_all(int count)
{
	for (int i = 0; i < count; i++) {
		block[i] = malloc(BYTES);
		probe_require(block[i] != NULL, "malloc is NULL");
		probe_fill(block[i], 100, (uint64_t)i);
		memset((char *)block[i] + 100, i, BYTES - 100);
	}
}

static void give_all(int count)
{
	for (int i = 0; i < count; i++) {
		probe_require(probe_filled(block[i], 100, (uint64_t)i), "block %d lost", i);
		free(block[i]);
	}
}

int main(void)
{
	long faults;
	size_t rss;
	char *p;

	probe_limit();
	probe_require(probe_rss_anon(0) < 16 * MIB, "filled before the first request");
	block[0] = malloc(BYTES);
	rss = probe_wait_rss_above(0, COUNT * BYTES);
	probe_require(rss >= COUNT * BYTES, "not filled: %zu", rss);
	free(block[0]);

	/* the account begins with 4 MiB, and its first pages */
	take_all(COUNT);
	give_all(COUNT);
	faults = probe_minor_faults();
	take_all(COUNT);
	probe_require(probe_minor_faults() - faults < 8, "%ld faults",
		      probe_minor_faults() - faults);
	probe_require(malloc_usable_size(block[3]) == BYTES, "usable size");
	give_all(COUNT);

	probe_sleep_ms(700);
	malloc_trim(0);
	rss = probe_rss_anon(0);
	probe_require(rss >= COUNT * BYTES, "did not stay: %zu", rss);
	faults = probe_minor_faults();
	take_all(COUNT);
	probe_require(probe_minor_faults() - faults < 8, "%ld faults after idling",
		      probe_minor_faults() - faults);
	give_all(COUNT);

	/* two more than there are; the rest is served as usual */
	take_all(COUNT - 1);
	block[COUNT - 1] = calloc(BYTES / 8, 8);
	probe_require(probe_zero(block[COUNT - 1], BYTES), "calloc is not zero");
	probe_fill(block[COUNT - 1], 100, COUNT - 1);
	for (int i = COUNT; i < COUNT + 2; i++) {
		block[i] = malloc(BYTES);
		probe_fill(block[i], 100, (uint64_t)i);
	}
	p = realloc(block[5], BYTES - 5000);
	probe_require(p == block[5], "a smaller block left its slot");
	give_all(COUNT + 2);

	block[0] = malloc(3 * MIB);
	block[1] = aligned_alloc(4096, 3 * MIB);
	block[2] = malloc(3 * MIB);
	for (int i = 0; i < 3; i++)
		free(block[i]);
	return 0;
}
