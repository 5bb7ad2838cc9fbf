/* SPDX-License-Identifier: MIT */
/*
 * H60, log 65: a program works in 14 phases, some in new threads. Each holds 120 MiB in blocks of
 * one size, frees all and is followed at once by a phase of another size. Freed memory serves the
 * next phase whatever its size: the peak is at most 3.5 times what is ever live, mostly 2.3 (glibc 2.2,
 * tcmalloc 1.3, jemalloc 2.7).
 * Failure: empty spans stay with their size class, their thread or their part until idle time
 * comes, and the peak is the sum of the phases.
 */
#include "probe.h"
#include <pthread.h>

enum { LIVE = 120 << 20, MAX = LIVE / 256 };

static void *use(void *arg)
{
	static unsigned char *block[MAX];
	size_t size = (size_t)(uintptr_t)arg, n = 0;

	for (; n < MAX && (n + 1) * size <= LIVE; n++) {
		block[n] = malloc(size);
		probe_require(block[n] != NULL, "malloc(%zu) is NULL", size);
		memset(block[n], 1, size);
	}
	while (n-- > 0)
		free(block[n]);
	return NULL;
}

int main(void)
{
	static const size_t sizes[] = {300, 5000, 3 * MIB, 256, 30000, 90000, 700000};
	pthread_t t;

	probe_limit();
	for (size_t round = 0; round < 14; round++) {
		void *size = (void *)(uintptr_t)sizes[round % 7];
		if (round % 3 == 0) {
			use(size);
			continue;
		}
		probe_require(pthread_create(&t, NULL, use, size) == 0, "no thread");
		pthread_join(t, NULL);
	}
	size_t peak = (size_t)probe_status(0, "VmHWM") * KIB;
	probe_require(peak < (size_t)LIVE * 7 / 2, "peak of %zu MiB for %d MiB live", peak / MIB,
		      LIVE >> 20);
	return 0;
}
