/* SPDX-License-Identifier: MIT */
/*
 * H64, log 62: a loop that takes, fills and frees an aligned block of 8 MiB, or a few blocks per
 * round like a request does, has fewer than 10 page faults a round once it is warm, and 1,000
 * rounds of an aligned 2 MiB block use at most 3 addresses.
 * Failure: 2,048 faults a round (glibc, jemalloc: memory is unmapped and mapped each time).
 */
#include "probe.h"

static void *aligned(size_t align, size_t bytes)
{
	void *p = NULL;

	probe_require(posix_memalign(&p, align, bytes) == 0, "posix_memalign failed");
	memset(p, 1, bytes);
	return p;
}

static void request(void)
{
	void *p[12];

	for (size_t i = 0; i < 12; i++)
		p[i] = aligned(64, (i + 1) * 700000);
	for (size_t i = 0; i < 12; i++)
		free(p[(i * 5) % 12]);
}

static void single(void)
{
	free(aligned(64, 8 * MIB));
}

static void measure(void (*round)(void), const char *what)
{
	for (int i = 0; i < 20; i++)
		round();
	long faults = probe_minor_faults();
	for (int i = 0; i < 100; i++)
		round();
	faults = probe_minor_faults() - faults;
	probe_require(faults < 1000, "%s: %ld faults a round", what, faults / 100);
}

int main(void)
{
	void *seen[4] = {NULL};
	size_t addresses = 0;

	probe_limit();
	measure(single, "8 MiB");
	measure(request, "request");
	for (int i = 0; i < 1000; i++) {
		void *p = aligned(2 * MIB, 2 * MIB);
		size_t k = 0;
		while (k < addresses && seen[k] != p)
			k++;
		probe_require(k < 3, "more than 3 addresses for one block of 2 MiB");
		seen[k] = p;
		addresses = k == addresses ? addresses + 1 : addresses;
		free(p);
	}
	return 0;
}
