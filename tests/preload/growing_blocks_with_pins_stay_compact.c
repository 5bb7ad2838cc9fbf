/* SPDX-License-Identifier: MIT */
/*
 * Log 61, 68: a buffer grows by realloc from 1 MB in steps of 1 %, and aligned buffers are
 * replaced by ever larger ones, while 4 KB blocks that stay are allocated in between. Resident
 * memory stays below 1.5 times what is live, addresses below 4 times.
 * Failure: every step leaves a hole that the next cannot use.
 */
#include "probe.h"

enum { PINS = 4000 };

int main(void)
{
	static void *pin[PINS];
	size_t live = 0, pins = 0, bytes = MIB;
	size_t addresses = (size_t)probe_status(0, "VmSize") * KIB;
	char *p = malloc(bytes);
	void *aligned = NULL;

	probe_limit();
	memset(p, 1, bytes);
	for (int i = 0; i < 400; i++) {
		size_t next = bytes + bytes / 100;
		p = realloc(p, next);
		probe_require(p != NULL, "realloc is NULL");
		memset(p + bytes, 1, next - bytes);
		bytes = next;
		pin[pins++] = calloc(1, 4000);
	}
	for (size_t i = 0; i < 2000; i++) {
		free(aligned);
		probe_require(posix_memalign(&aligned, 64, 30000 + i * 500) == 0, "no memory");
		memset(aligned, 1, 30000 + i * 500);
		pin[pins++] = calloc(1, 4000);
	}
	live = bytes + 30000 + 2000 * 500 + pins * 4000;
	size_t rss = probe_rss_anon(0);
	addresses = (size_t)probe_status(0, "VmSize") * KIB - addresses;
	probe_require(rss < live * 3 / 2 + 4 * MIB, "%zu MiB resident for %zu MiB", rss / MIB,
		      live / MIB);
	probe_require(addresses < live * 4 + 128 * MIB, "%zu MiB of addresses for %zu MiB",
		      addresses / MIB, live / MIB);
	for (size_t i = 0; i < pins; i++)
		free(pin[i]);
	return 0;
}
