/* SPDX-License-Identifier: MIT */
/*
 * A pool of a size up to 64 KiB: its slots become resident once the first request came and stay so while the
 * program is idle and after malloc_trim, in whichever thread; they are of the tier that was named. When all
 * are out, requests are served as usual. Without a ledger, whose tables have page faults of their own.
 * Failure: faults, memory that went back, another tier.
 */
/* env: TIERMALLOC_POOLS=4K*2000@persistent,24*100000,40K*64@temporary TIERMALLOC_SESSION_DECAY=100ms TIERMALLOC_LEDGER=off TIERMALLOC_REPORT=exit */
/* stderr: .* *persistent +4\.0 KiB +[0-9]+ +[1-9][0-9]* +0 +0 +[1-9][0-9]* */
/* stderr: .* *any tier +24 B +[0-9]+ +[1-9][0-9]* +0 +[1-9][0-9]* +[1-9][0-9]* */
/* stderr: .* *temporary +40\.0 KiB +72 +[1-9][0-9]* +0 +0 +[1-9][0-9]* */
#include <malloc.h>
#include <pthread.h>

#include "probe.h"
#include "shim/tiermalloc.h"

#define COUNT 1500
#define MANY 200000

static char *block[COUNT];
static char *small[MANY];

static uint64_t live(enum tiermalloc_tier tier)
{
	struct tiermalloc_stats stats = {.struct_bytes = sizeof(stats)};

	probe_require(tiermalloc_stats(&stats) == 0, "no figures");
	return stats.live_bytes[tier];
}

static void take(size_t bytes, int count)
{
	for (int i = 0; i < count; i++) {
		block[i] = malloc(bytes);
		probe_require(block[i] != NULL, "malloc is NULL");
		memset(block[i], i, bytes);
	}
}

static void give(int count)
{
	for (int i = 0; i < count; i++) {
		probe_require((unsigned char)block[i][100] == (unsigned char)i, "block %d lost", i);
		free(block[i]);
	}
}

static void *thread(void *unused)
{
	take(4096, COUNT);
	give(COUNT);
	return unused;
}

int main(void)
{
	uint64_t persistent = live(TIERMALLOC_PERSISTENT);
	pthread_t t;
	size_t rss;
	long faults;

	probe_limit();
	rss = probe_rss_anon(0);
	take(4096, COUNT);
	rss = probe_wait_rss_above(0, rss + (size_t)2000 * 4096);
	probe_require(live(TIERMALLOC_PERSISTENT) >= persistent + COUNT * 4096, "another tier");
	give(COUNT);
	malloc_trim(0);
	probe_sleep_ms(500);
	malloc_trim(0);
	faults = probe_minor_faults();
	take(4096, COUNT);
	probe_require(probe_minor_faults() - faults < 8, "%ld faults",
		      probe_minor_faults() - faults);
	give(COUNT);

	/* another thread's heap gets them, once this one has given up what is free */
	malloc_trim(0);
	faults = probe_minor_faults();
	pthread_create(&t, NULL, thread, NULL);
	pthread_join(t, NULL);
	probe_require(probe_minor_faults() - faults < 64, "%ld faults in a thread",
		      probe_minor_faults() - faults);

	rss = probe_rss_anon(0);
	take(40960, 60);
	(void)probe_wait_rss_above(0, rss + (size_t)72 * 40960);
	give(60);
	malloc_trim(0);
	faults = probe_minor_faults();
	take(40960, 60);
	probe_require(probe_minor_faults() - faults < 8, "%ld faults",
		      probe_minor_faults() - faults);
	give(60);

	/* more than there are */
	for (int i = 0; i < MANY; i++) {
		small[i] = malloc(24);
		probe_require(small[i] != NULL, "malloc is NULL");
		small[i][0] = (char)i;
	}
	for (int i = 0; i < MANY; i++) {
		probe_require(small[i][0] == (char)i, "block %d lost", i);
		free(small[i]);
	}
	return 0;
}
