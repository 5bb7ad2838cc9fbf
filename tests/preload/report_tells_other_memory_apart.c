/* SPDX-License-Identifier: MIT */
/*
 * H65, H78: a program maps 300 MiB itself and reads a 100 MiB file through a mapping, and holds
 * 50 MiB of heap. The report's live figure is the heap's, and it says how much of the resident
 * set is not ours: the mapped file is not called heap.
 * Failure: "live" covers what never passed through malloc, or the rest is not mentioned.
 */
/* env: TIERMALLOC_REPORT=exit TIERMALLOC_REPORT_FILE=report.txt */
#include "probe.h"
#include <sys/mman.h>

int main(int argc, char **argv)
{
	static char report[65536], chunk[MIB];

	probe_limit();
	if (argc > 1) {
		int fd = open("data", O_RDWR | O_CREAT | O_TRUNC, 0600);
		for (int i = 0; i < 100; i++)
			if (write(fd, chunk, MIB) != (ssize_t)MIB)
				probe_skip("no room for a file of 100 MiB");
		char *own = mmap(NULL, 300 * MIB, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		char *file = mmap(NULL, 100 * MIB, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
		probe_require(own != MAP_FAILED && file != MAP_FAILED, "no mapping");
		memset(own, 1, 300 * MIB);
		char *heap = malloc(50 * MIB);
		memset(heap, 1, 50 * MIB);
		return heap[MIB] - own[MIB];
	}
	unlink("report.txt");
	probe_child_ok(probe_again(argv[0], "work"), "work");
	probe_require(probe_read("report.txt", report, sizeof(report)) > 0, "no report");
	/* 50 MiB in whatever unit: 50.0 MiB, 52428800, 51200 KiB ... */
	probe_require(strstr(report, "50.") != NULL || strstr(report, "5242") != NULL ||
			      strstr(report, "50 M") != NULL || strstr(report, "5120") != NULL,
		      "50 MiB of heap are not in the report: %s", report);
	probe_require(strcasestr(report, "file") != NULL, "nothing about mapped files: %s", report);
	return 0;
}
