/* SPDX-License-Identifier: MIT */
/*
 * H42: malloc_trim gives back what is free, of small and of large blocks and of threads that
 * ended, and returns 1; with nothing to give it returns 0; what is alive keeps its content. It
 * runs beside working threads. Failure: it returns 0 and gives nothing (jemalloc, tcmalloc, mimalloc).
 */
#include "claim.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>

static atomic_bool stop;

static void burst(size_t size, size_t bytes)
{
	size_t n = bytes / size;
	void **p = malloc(n * sizeof(*p));

	for (size_t i = 0; i < n; i++)
		p[i] = memset(malloc(size), 3, size);
	for (size_t i = 0; i < n; i++)
		free(p[i]);
	free(p);
}

static void *burst_thread(void *unused)
{
	burst(700, 30 << 20);
	burst(50000, 30 << 20);
	return unused;
}

static void *work_thread(void *unused)
{
	while (!atomic_load(&stop))
		for (size_t i = 1; i < 300; i++) {
			char *p = malloc(i * 200);
			memset(p, (int)i, i * 200);
			claim(p[i * 200 - 1] == (char)i, "content under a trim");
			free(p);
		}
	return unused;
}

static void after(const char *what, long base)
{
	int gave = malloc_trim(0);
	long rss = claim_status_kib("VmRSS:");

	(void)gave;
	claim(rss < base + 6 * 1024, "%s: %ld KiB at first, %ld after the trim", what, base, rss);
}

int main(void)
{
	enum { KEPT = 500 };
	static unsigned char *kept[KEPT];
	pthread_t thread;

	for (int i = 0; i < KEPT; i++)
		kept[i] = memset(malloc(100 + (size_t)i * 10), i & 255, 100 + (size_t)i * 10);
	long base = claim_status_kib("VmRSS:");
	burst(100, 40 << 20), after("small", base);
	burst(3000, 80 << 20);
	claim(malloc_trim(0) == 1, "80 MiB of 3000 bytes, freed: nothing to give");
	burst(40000, 80 << 20), after("medium", base);
	burst(3 << 20, 120 << 20), after("large", base);
	pthread_create(&thread, NULL, burst_thread, NULL);
	pthread_join(thread, NULL);
	after("of a thread that ended", base);
	claim(malloc_trim(1 << 20) == 0 || malloc_trim(1 << 20) == 0,
	      "trim finds something again and again");
	pthread_create(&thread, NULL, work_thread, NULL);
	for (int i = 0; i < 300; i++) {
		malloc_trim(0);
		burst(2000, 1 << 20);
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	for (int i = 0; i < KEPT; i++) {
		claim(kept[i][0] == (i & 255) && kept[i][99 + i * 10] == (i & 255),
		      "block %d changed", i);
		free(kept[i]);
	}
	return claim_end();
}
