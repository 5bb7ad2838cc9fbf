/* SPDX-License-Identifier: MIT */
/*
 * TIERMALLOC_SOURCE_DROP=1: a file that was mapped, copied into blocks and is not read any more leaves
 * memory once the program serves; its bytes are what they were. A second one, on which the program goes
 * on to compute, is tried and left alone. Failure: files that stay, that are dropped again and again, or
 * other bytes.
 */
/* env: TIERMALLOC_SOURCE_DROP=1 TIERMALLOC_LOG=giveback TIERMALLOC_LEDGER=off */
#include <fnmatch.h>
#include <sys/mman.h>
#include <sys/vfs.h>

#include "probe.h"
#include "shim/tiermalloc.h"

#define BYTES (48 * MIB)

static unsigned char word(size_t at)
{
	return (unsigned char)(at * 31 + (at >> 12));
}

static const unsigned char *make(const char *name)
{
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
	static unsigned char page[4096];
	void *p;

	for (size_t at = 0; at < BYTES; at += sizeof(page)) {
		for (size_t i = 0; i < sizeof(page); i++)
			page[i] = word(at + i);
		if (write(fd, page, sizeof(page)) != (ssize_t)sizeof(page))
			probe_skip("no room for a file");
	}
	/* pages that were not written yet can't be dropped at once */
	fsync(fd);
	p = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
	probe_require(p != MAP_FAILED, "no mapping");
	close(fd);
	return p;
}

/* Of a file's mapping, in KiB. */
static long resident(const void *at)
{
	char head[32], line[512];
	FILE *f = fopen("/proc/self/smaps", "r");
	bool inside = false;
	long rss = -1;

	snprintf(head, sizeof(head), "%lx-", (unsigned long)(uintptr_t)at);
	while (f != NULL && rss < 0 && fgets(line, sizeof(line), f) != NULL) {
		if (strncmp(line, head, strlen(head)) == 0)
			inside = true;
		else if (inside && strncmp(line, "Rss:", 4) == 0)
			rss = strtol(line + 4, NULL, 10);
	}
	if (f != NULL)
		fclose(f);
	return rss;
}

/* What the library has said so far. */
static bool was_said(const char *pattern)
{
	static char text[16384];
	char *line, *end;

	if (probe_read("said", text, sizeof(text)) < 0)
		return false;
	for (line = text; (end = strchr(line, '\n')) != NULL; line = end + 1) {
		*end = '\0';
		if (fnmatch(pattern, line, 0) == 0)
			return true;
	}
	return false;
}

static unsigned sum;

/* A step: temporaries, and one file is read. */
static void step(const unsigned char *computed)
{
	unsigned char *p = malloc(MIB);

	memset(p, 1, MIB);
	for (size_t i = 0; i < BYTES; i += 64)
		sum += computed[i] * p[i % MIB];
	free(p);
}

int main(void)
{
	const unsigned char *repacked, *computed;
	unsigned char *weights;
	struct statfs fs;

	probe_limit();
	if (statfs(".", &fs) != 0 || fs.f_type == 0x01021994 || fs.f_type == 0x858458f6)
		probe_skip("files here are memory themselves");
	repacked = make("repacked");
	computed = make("computed");
	weights = malloc(BYTES);
	for (size_t i = 0; i < BYTES; i++)
		weights[i] = (unsigned char)(repacked[i] ^ 0x55);
	for (size_t i = 0; i < BYTES; i += 4096)
		sum += computed[i];
	madvise((void *)(uintptr_t)repacked, BYTES, MADV_PAGEOUT);
	if (resident(repacked) > (long)(BYTES / KIB / 2))
		probe_skip("the kernel does not page files out");
	for (size_t i = 0; i < BYTES; i += 4096)
		sum += repacked[i];
	probe_require(resident(repacked) > (long)(BYTES / KIB / 2), "not resident");

	dup2(open("said", O_RDWR | O_CREAT | O_APPEND, 0600), STDERR_FILENO);
	tiermalloc_step(); /* serving */
	while (!was_said("* of '*repacked', to see whether it is read again") ||
	       !was_said("* of '*repacked'") ||
	       /* or at once, before it was looked at */
	       !(was_said("* '*computed' is read again, it is left alone") ||
		 was_said("* nothing of '*computed' can be dropped")))
		step(computed);
	probe_require(resident(repacked) <= (long)(BYTES / KIB / 8), "not dropped");
	probe_require(resident(computed) > (long)(BYTES / KIB / 2), "dropped though it is read");
	for (size_t i = 0; i < BYTES; i++)
		probe_require(repacked[i] == word(i) && weights[i] == (word(i) ^ 0x55),
			      "other bytes at %zu", i);
	return sum == 1;
}
