/* SPDX-License-Identifier: MIT */
/*
 * H59, log 55: mlockall(MCL_CURRENT | MCL_FUTURE) under a limit of 64 MiB, without privilege (only
 * MCL_FUTURE where no more than 8 is allowed). It is granted, so is the larger part of the limit
 * in blocks of 1/128 of it, and beyond the limit there is NULL with ENOMEM.
 * With MCL_FUTURE alone, 1 MiB is enough for 300 KB of blocks: later steps are small.
 * And a page that the program locked inside a block, whose release the kernel therefore refuses,
 * comes back zero from calloc.
 * Failure: mlockall is refused because too much is mapped (jemalloc, tcmalloc), a crash
 * (mimalloc), or dirty calloc.
 */
#include "probe.h"
#include <malloc.h>
#include <sys/mman.h>

static void fill_until_limit(void)
{
	static unsigned char *block[200];
	struct rlimit limit;
	size_t got = 0;

	probe_limit();
	free(malloc(100));
	getrlimit(RLIMIT_MEMLOCK, &limit);
	limit.rlim_cur = limit.rlim_max < 64 * MIB ? limit.rlim_max : 64 * MIB;
	setrlimit(RLIMIT_MEMLOCK, &limit);
	if (limit.rlim_cur < 8 * MIB)
		probe_skip("only %zu KiB may be locked", (size_t)limit.rlim_cur / KIB);
	if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0)
		probe_skip("cannot drop privilege");
	int flags = limit.rlim_cur < 64 * MIB ? MCL_FUTURE : MCL_CURRENT | MCL_FUTURE;
	probe_require(mlockall(flags) == 0, "mlockall: %s", strerror(errno));
	for (int round = 0; round < 3; round++) {
		size_t bytes = limit.rlim_cur / 128;
		errno = 0;
		for (got = 0; got < 200 && (block[got] = malloc(bytes)) != NULL; got++)
			memset(block[got], 1, bytes);
		probe_require(got < 200 && errno == ENOMEM, "errno is %d", errno);
		probe_require(got >= 50, "round %d: only %zu blocks of %zu KiB", round, got,
			      bytes / KIB);
		free(block[--got]);
		for (size_t i = 1; i < 1000; i++)
			free(malloc(i));
		while (got-- > 0)
			free(block[got]);
		malloc_trim(0);
	}
	_exit(0);
}

static void little_is_enough(void)
{
	struct rlimit limit;

	probe_limit();
	free(malloc(100));
	getrlimit(RLIMIT_MEMLOCK, &limit);
	limit.rlim_cur = MIB;
	if (limit.rlim_max < MIB || setrlimit(RLIMIT_MEMLOCK, &limit) != 0)
		probe_skip("less than 1 MiB may be locked");
	if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0)
		probe_skip("cannot drop privilege");
	probe_require(mlockall(MCL_FUTURE) == 0, "mlockall: %s", strerror(errno));
	for (int i = 0; i < 100; i++)
		probe_require(malloc(1000) != NULL, "block %d is NULL", i);
	probe_require(malloc(200000) != NULL, "a large block is NULL");
	_exit(0);
}

static void locked_block(size_t bytes)
{
	for (int round = 0; round < 12; round++) {
		unsigned char *p = calloc(1, bytes);
		probe_require(p != NULL && probe_zero(p, bytes), "calloc(%zu) is dirty", bytes);
		memset(p, 0xaa, bytes);
		mlock(p + bytes / 2, 4096);
		free(p);
		if (round % 2 == 0)
			malloc_trim(0);
		if (round % 8 == 7)
			probe_sleep_ms(600);
	}
}

int main(void)
{
	pid_t pid;

	probe_limit();
	pid = fork();
	if (pid == 0)
		fill_until_limit();
	probe_child_ok(pid, "mlockall");
	pid = fork();
	if (pid == 0)
		little_is_enough();
	probe_child_ok(pid, "a little locked memory");
	locked_block(40000);
	locked_block(300000);
	locked_block(5 * MIB);
	return 0;
}
