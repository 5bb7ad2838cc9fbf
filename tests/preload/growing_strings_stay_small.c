/* SPDX-License-Identifier: MIT */
/*
 * A string that doubles whenever it is full ends with 4.3 MiB in a block of 8. In a small process no
 * more of that is resident than was written; beside 64 MiB the same string stands on huge pages.
 * Failure: up to 2 MiB more, which is a tenth of a small program.
 */
#include "probe.h"

static char *grow(size_t most)
{
	size_t room = 512 * KIB, at = 0;
	char *s = malloc(room);

	while (at < most) {
		if (at == room) {
			room *= 2;
			s = realloc(s, room);
		}
		s[at++] = 1;
	}
	return s;
}

static long huge_kib(void)
{
	return probe_field("/proc/self/smaps_rollup", "AnonHugePages");
}

int main(void)
{
	char mode[64] = "";
	size_t rss = probe_rss_anon(0);
	char *s = grow(4400 * KIB);

	probe_limit();
	rss = probe_rss_anon(0) - rss;
	probe_require(s[4 * MIB] == 1 && s[1] == 1, "content is lost");
	/* with what it was before, until that has gone */
	probe_require(rss < 7200 * KIB, "%zu KiB for a string of 4,400", rss / KIB);
	free(s);
	probe_read("/sys/kernel/mm/transparent_hugepage/enabled", mode, sizeof(mode));
	if (strstr(mode, "[madvise]") == NULL)
		return 0;
	probe_require(huge_kib() == 0, "%ld KiB in huge pages", huge_kib());
	char *weights = malloc(64 * MIB);
	memset(weights, 1, 64 * MIB);
	long before = huge_kib();
	s = grow(12 * MIB);
	probe_require(s[4 * MIB] == 1 && weights[MIB] == 1, "content is lost");
	probe_require(huge_kib() - before >= 8 * 1024, "only %ld KiB in huge pages",
		      huge_kib() - before);
	return 0;
}
