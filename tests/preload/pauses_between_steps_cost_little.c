/* SPDX-License-Identifier: MIT */
/*
 * H58, H61: steps of 209 MiB in blocks of 64 KiB to 64 MiB, with pauses between. In each pause the
 * process gets small by itself; from the third step on the memory comes back in huge pages, most of it.
 * Failure: all of it stays, or each step has 50,000 page faults, since the blocks by which it could be
 * known that they are full have been given back when the next ones come.
 */
#include "probe.h"

enum { BLOCKS = 20, STEPS = 5 };

static void step(void)
{
	char *block[BLOCKS];
	double size = 65536;

	for (int i = 0; i < BLOCKS; i++, size *= 1.44) {
		block[i] = malloc((size_t)size);
		for (size_t at = 0; at < (size_t)size; at += 4096)
			((volatile char *)block[i])[at] = 1;
	}
	for (int i = 0; i < BLOCKS; i++)
		free(block[i]);
}

int main(void)
{
	char mode[64] = "";
	long before, faults = 0;

	probe_limit();
	probe_read("/sys/kernel/mm/transparent_hugepage/enabled", mode, sizeof(mode));
	if (strstr(mode, "[madvise]") == NULL && strstr(mode, "[always]") == NULL)
		probe_skip("no transparent huge pages here");
	if (probe_status(0, "Seccomp") != 0)
		probe_skip("nothing is looked at under a filter");
	for (int i = 0; i < STEPS; i++) {
		before = probe_minor_faults();
		step();
		faults = probe_minor_faults() - before;
		size_t rss = probe_wait_rss(0, 20 * MIB);
		probe_require(rss <= 20 * MIB, "%zu MiB stay in a pause", rss / MIB);
	}
	probe_require(faults < 12000, "%ld faults in a step", faults);
	return 0;
}
