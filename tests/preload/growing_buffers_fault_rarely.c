/* SPDX-License-Identifier: MIT */
/*
 * 48 buffers, as of the keys and values of 24 layers, are written row by row and grow by a half whenever
 * they are full. From 150 KiB on, a row of all of them costs less than two page faults on average.
 * Failure: one for each buffer and 4 KiB, since grown blocks get small pages like any that may stay empty.
 */
#include "probe.h"

enum { BUFFERS = 48, ROW = 4096, ROWS = 200, FROM = 36 };

int main(void)
{
	static char *buffer[BUFFERS];
	char *weights = malloc(64 * MIB);
	size_t room = 16;
	long faults = 0;
	char mode[64] = "";

	probe_limit();
	probe_read("/sys/kernel/mm/transparent_hugepage/enabled", mode, sizeof(mode));
	if (strstr(mode, "[madvise]") == NULL && strstr(mode, "[always]") == NULL)
		probe_skip("no transparent huge pages here");
	memset(weights, 1, 64 * MIB);
	for (int i = 0; i < BUFFERS; i++)
		buffer[i] = malloc(room * ROW);
	for (size_t row = 0; row < ROWS; row++) {
		if (row == FROM)
			faults = probe_minor_faults();
		if (row == room) {
			room += room / 2;
			for (int i = 0; i < BUFFERS; i++)
				buffer[i] = realloc(buffer[i], room * ROW);
		}
		for (int i = 0; i < BUFFERS; i++)
			memset(buffer[i] + row * ROW, 1, ROW);
	}
	faults = probe_minor_faults() - faults;
	probe_require(faults < 2 * (ROWS - FROM), "%ld faults in %d rows", faults, ROWS - FROM);
	return 0;
}
