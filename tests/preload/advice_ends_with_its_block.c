/* SPDX-License-Identifier: MIT */
/*
 * H93: a program gives MADV_DONTFORK, MADV_WIPEONFORK, MADV_DONTDUMP, MADV_RANDOM, mlock or
 * mprotect on pages of its block and frees the block without taking it back. The next owner of
 * the addresses gets plain memory: writable, the same in a forked child, in core dumps, unlocked.
 * Failure: a crash or zeros in the child, a read-only block, a leftover in VmFlags.
 */
#include "probe.h"
#include <sys/mman.h>

enum { DONTFORK, WIPEONFORK, DONTDUMP, RANDOM, LOCK, READ_ONLY, ADVICES };
static const char *const name[] = {"MADV_DONTFORK", "MADV_WIPEONFORK", "MADV_DONTDUMP",
				   "MADV_RANDOM",   "mlock",           "mprotect"};
static const char *const flag[] = {" dc", " wf", " dd", " rr", " lo", ""};

static void advise(int advice, unsigned char *p, size_t bytes)
{
	unsigned char *start = p + (4096 - (uintptr_t)p % 4096) % 4096;
	size_t pages = (bytes - (size_t)(start - p)) / 4096 * 4096;
	static const int value[] = {MADV_DONTFORK, MADV_WIPEONFORK, MADV_DONTDUMP, MADV_RANDOM};

	if (advice == LOCK)
		mlock(start, pages < 65536 ? pages : 65536);
	else if (advice == READ_ONLY)
		mprotect(start, pages, PROT_READ);
	else
		madvise(start, pages, value[advice]);
}

/* Whether the mapping of p has the flag. */
static bool has_flag(const void *p, const char *what)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	char line[512];
	unsigned long start, end;
	bool inside = false, found = false;

	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			inside = start <= (uintptr_t)p && (uintptr_t)p < end;
		else if (inside && strncmp(line, "VmFlags:", 8) == 0)
			found = strstr(line, what) != NULL;
	}
	if (f != NULL)
		fclose(f);
	return found;
}

static void next_owner(int advice, size_t bytes)
{
	unsigned char *p = malloc(bytes);

	probe_require(p != NULL, "malloc is NULL");
	pid_t pid = fork(); /* written to in a child first: a read-only block shows as its signal */
	if (pid == 0) {
		memset(p, 0x5a, bytes);
		_exit(0);
	}
	int status = probe_wait(pid);
	probe_require(status == 0, "after %s: %zu bytes are not writable in a child (%#x)",
		      name[advice], bytes, (unsigned)status);
	memset(p, 0x5a, bytes);
	pid = fork();
	if (pid == 0) {
		for (size_t i = 0; i < bytes; i++)
			if (p[i] != 0x5a)
				_exit(1);
		_exit(0);
	}
	status = probe_wait(pid);
	probe_require(status == 0, "after %s: %zu bytes differ in a child (%#x)", name[advice],
		      bytes, (unsigned)status);
	for (size_t at = 0; flag[advice][0] != 0 && at < bytes; at += bytes / 3 + 1)
		probe_require(!has_flag(p + at, flag[advice]), "after %s: VmFlags has%s",
			      name[advice], flag[advice]);
	free(p);
}

int main(void)
{
	static const size_t sizes[] = {8 * MIB, 3 * MIB, 300000, 70000, 20000};

	probe_limit();
	for (int advice = 0; advice < ADVICES; advice++)
		for (size_t i = 0; i < 5; i++) {
			unsigned char *p = malloc(sizes[i]);
			memset(p, 1, sizes[i]);
			/* who writes lists into free blocks cannot take back a read-only one */
			if (advice != READ_ONLY || sizes[i] > 65536)
				advise(advice, p, sizes[i]);
			free(p);
			for (int k = 0; k < 3; k++)
				next_owner(advice, sizes[i]);
		}
	return 0;
}
