/* SPDX-License-Identifier: MIT */
/*
 * H27 H72: a daemon that holds much becomes another user in the middle of its life, one who may start no
 * thread, closes every descriptor, forks, and goes on. Its ledger is its former user's.
 * Failure: no memory, a crash, a descriptor of ours among the program's.
 */
#include "probe.h"
#include <grp.h>
#include <sys/syscall.h>

static void work(void)
{
	static char *block[300];

	for (int round = 0; round < 5; round++) {
		for (size_t i = 0; i < 300; i++) {
			block[i] = malloc(i % 3 ? i * 20 + 1 : 200000);
			probe_require(block[i] != NULL, "no memory");
			memset(block[i], 1, i % 3 ? i * 20 + 1 : 200000);
		}
		for (size_t i = 0; i < 300; i++)
			free(block[i]);
		/* idle memory is to be given back, by whom nobody lets live */
		probe_sleep_ms(60);
	}
}

int main(void)
{
	char *much = malloc(20 * MIB);
	struct rlimit none = {1, 1};

	probe_limit();
	if (geteuid() != 0)
		probe_skip("needs to be root");
	memset(much, 1, 20 * MIB);
	work();
	probe_require(setgroups(0, NULL) == 0 && setgid(65534) == 0 && setuid(65534) == 0,
		      "rights stay: %s", strerror(errno));
	setrlimit(RLIMIT_NPROC, &none);
#ifdef SYS_close_range
	syscall(SYS_close_range, 3U, ~0U, 0U);
#endif
	work();
	free(much);
	work();
	/* the lowest one is the program's */
	int fd = dup(2);
	probe_require(fd == 3, "the first free descriptor is %d", fd);
	return 0;
}
