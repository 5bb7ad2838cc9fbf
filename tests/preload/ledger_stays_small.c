/* SPDX-License-Identifier: MIT */
/*
 * H79: twenty million allocations, from 500 depths of one recursion and with little memory live,
 * leave files of at most 8 MiB and 4 bytes per live slot: counters are updated, not appended to.
 * A small process that was told where to keep its ledger leaves less than half a MiB.
 * Failure: files that grow with the number of events.
 */
#include "probe.h"
#include <dirent.h>
#include <sys/stat.h>

static size_t bytes_in(const char *folder)
{
	DIR *dir = opendir(folder);
	char path[512];
	struct stat st;
	size_t sum = 0;

	for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
		snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
		if (e->d_name[0] != '.' && stat(path, &st) == 0)
			sum += (size_t)st.st_blocks * 512;
	}
	if (dir != NULL)
		closedir(dir);
	return sum;
}

__attribute__((noinline)) static void deep(int depth, int rounds)
{
	char *volatile p = malloc((size_t)depth % 700 + 1);

	if (depth > 0)
		deep(depth - 1, rounds);
	free(p);
	for (int i = 0; i < rounds; i++) {
		p = malloc((size_t)i % 700 + 1);
		free(p);
	}
}

int main(int argc, char **argv)
{
	static char *live[20000];

	probe_limit();
	if (argc > 1 && argv[1][0] == 's') {
		deep(10, 10);
		return 0;
	}
	if (argc > 1) {
		for (size_t i = 0; i < 20000; i++)
			live[i] = malloc(500);
		deep(500, 40000);
		_exit(live[19999] == NULL);
	}
	mkdir("ledgers", 0700);
	setenv("TIERMALLOC_DIR", "ledgers", 1);
	probe_child_ok(probe_again(argv[0], "small"), "small");
	size_t small = bytes_in("ledgers");
	probe_child_ok(probe_again(argv[0], "large"), "large");
	size_t bytes = bytes_in("ledgers");
	probe_require(small > 0 && small < MIB / 2, "a small process left %zu bytes", small);
	probe_require(bytes <= 9 * MIB, "%zu KiB of files", bytes / KIB);
	return 0;
}
