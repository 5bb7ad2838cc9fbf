/* SPDX-License-Identifier: MIT */
/*
 * H56, log 17: random allocation of 8 to 200 KB with malloc_trim in between and idle times leaves
 * a handful of mappings: memory goes back without cutting them to pieces.
 * Failure: more than 1,000 lines in /proc/self/maps (65,530 is the kernel's end).
 */
#include "probe.h"
#include <malloc.h>

enum { LIVE = 4000, ROUNDS = 100000 };

static long count_mappings(void)
{
	char buf[65536];
	long lines = 0;
	int fd = open("/proc/self/maps", O_RDONLY);

	if (fd < 0)
		probe_skip("no /proc/self/maps");
	for (ssize_t n; (n = read(fd, buf, sizeof(buf))) > 0;)
		for (ssize_t i = 0; i < n; i++)
			lines += buf[i] == '\n';
	close(fd);
	return lines;
}

int main(void)
{
	static unsigned char *block[LIVE];
	uint64_t seed = 17;
	long before = count_mappings(), most = 0;

	probe_limit();
	for (int i = 0; i < ROUNDS; i++) {
		size_t at = probe_random(&seed) % LIVE, bytes = 8000 + probe_random(&seed) % 192000;
		free(block[at]);
		block[at] = malloc(bytes);
		probe_require(block[at] != NULL, "malloc is NULL");
		block[at][0] = block[at][bytes / 2] = block[at][bytes - 1] = 1;
		if (i % 4000 == 0)
			malloc_trim(0);
		if (i % 25000 == 0)
			probe_sleep_ms(700);
		if (i % 1000 == 0) {
			long now = count_mappings() - before;
			most = now > most ? now : most;
		}
	}
	probe_require(most < 1000, "%ld mappings", most);
	return 0;
}
