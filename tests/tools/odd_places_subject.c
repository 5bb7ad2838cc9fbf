/* SPDX-License-Identifier: MIT */
/*
 * The program of ledgers_in_odd_places.py: odd_places_subject [go | exec OFFSET]. Allocates; go: leaves the
 * directory before; exec: writes another name space into its ledger's header, then starts itself anew.
 */
/* run: none */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *volatile kept[60000];

static int move_elsewhere(const char *folder, long offset)
{
	const uint64_t other = 12345;
	char path[600];
	DIR *dir = opendir(folder);

	for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
		if (strstr(e->d_name, ".tm") == NULL)
			continue;
		snprintf(path, sizeof(path), "%s/%.255s", folder, e->d_name);
		int fd = open(path, O_WRONLY | O_CLOEXEC);
		return fd >= 0 && pwrite(fd, &other, sizeof(other), offset) == sizeof(other);
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 1 && chdir("/") != 0)
		return 1;
	for (size_t i = 0; i < 60000; i++)
		kept[i] = malloc(100);
	for (size_t i = 0; i < 1000; i++)
		free(kept[i]);
	if (argc > 2) {
		if (!move_elsewhere(getenv("TIERMALLOC_DIR"), atol(argv[2])))
			return 2;
		execl(argv[0], argv[0], (char *)NULL);
		return 3;
	}
	puts("done");
	return 0;
}
