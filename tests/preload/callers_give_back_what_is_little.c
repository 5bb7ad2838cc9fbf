/* SPDX-License-Identifier: MIT */
/*
 * H62: idle memory that is too little for a helper thread (30 MiB in blocks and in small objects) goes
 * back as well while the program goes on with other blocks: its own calls do it, no thread is needed.
 */
#include "probe.h"
#include <malloc.h>

static void *volatile sink;

static void fill_and_free(size_t bytes, size_t count)
{
	void **p = calloc(count, sizeof(*p));

	for (size_t i = 0; i < count; i++) {
		p[i] = malloc(bytes);
		memset(p[i], 1, bytes);
	}
	for (size_t i = 0; i < count; i++)
		free(p[i]);
	free(p);
}

int main(void)
{
	long peak, now = 0;

	probe_limit();
	fill_and_free(200000, 78); /* 15 MiB */
	fill_and_free(64, 245760); /* 15 MiB */
	peak = probe_status(getpid(),
			    "VmHWM"); /* on a slow machine some may have gone back already */
	uint64_t end = probe_now_us() + probe_patience_s() * 1000000ULL;
	do {
		for (int k = 0; k < 200; k++) {
			sink = malloc(100000);
			free(sink);
		}
		probe_sleep_ms(100);
		now = probe_status(getpid(), "VmRSS");
	} while (now >= peak * 2 / 3 && probe_now_us() < end);
	probe_require(now < peak * 2 / 3, "of %ld KiB resident %ld stayed", peak, now);
	return 0;
}
