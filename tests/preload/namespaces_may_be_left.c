/* SPDX-License-Identifier: MIT */
/*
 * H27: what sandboxes do in the middle of their life: a process with one thread of its own, whose freed
 * memory has just started the helper thread, leaves what only a process with a single thread may leave.
 * Failure: EINVAL, because the helper is still one of its threads.
 */
#include "probe.h"
#include <dirent.h>
#include <sched.h>
#include <sys/syscall.h>

static int threads(void)
{
	static char text[8192];
	char *at;

	probe_require(probe_read("/proc/self/status", text, sizeof(text)) > 0, "no status");
	at = strstr(text, "Threads:");
	return at ? atoi(at + 8) : 0;
}

/* Frees much, until that has started the helper. */
static bool help(void)
{
	for (int i = 0; i < 50; i++) {
		char *p = malloc(40 * MIB);

		probe_require(p != NULL, "no memory");
		memset(p, 1, 40 * MIB);
		free(p);
		if (threads() > 1)
			return true;
	}
	return false;
}

int main(void)
{
	int failed = 0, rounds = 400;

	probe_limit();
	if (!help())
		probe_skip("no second thread comes here");
	/* refused exactly while there is a second thread, else without effect */
	for (int i = 0; i < rounds; i++) {
		probe_require(help(), "no second thread in round %d", i);
		int result =
			i % 2 ? unshare(CLONE_THREAD) : (int)syscall(SYS_unshare, CLONE_THREAD);
		failed += result != 0;
	}
	probe_require(failed == 0, "refused %d times of %d", failed, rounds);
	return 0;
}
