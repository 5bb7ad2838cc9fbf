/* SPDX-License-Identifier: MIT */
/*
 * H62: a program with 100 MiB of live blocks crashes; its core dump takes no more than what was
 * resident and 64 MiB, and holds the live blocks.
 * Failure: a reserved range of addresses is walked and dumped (terabytes, minutes), or the
 * program's data is left out of the dump.
 */
#include "probe.h"
#include <sys/stat.h>

static const char marker[] = "the content of a live block";

static void crash(void)
{
	struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};

	signal(SIGSEGV, SIG_DFL);
	if (setrlimit(RLIMIT_CORE, &limit) != 0)
		probe_skip("core dumps may not be switched on");
	for (int i = 0; i < 50; i++) {
		char *p = malloc(2 * MIB);
		memset(p, 1, 2 * MIB);
		memcpy(p + 5000, marker, sizeof(marker));
	}
	for (int i = 0; i < 50000; i++)
		free(malloc((size_t)i * 100));
	raise(SIGSEGV);
	_exit(1);
}

static size_t count_markers(const char *path)
{
	static char buf[(1 << 20) + sizeof(marker)];
	size_t found = 0, keep = 0;
	int fd = open(path, O_RDONLY);

	for (ssize_t n; (n = read(fd, buf + keep, 1 << 20)) > 0;) {
		size_t len = keep + (size_t)n;
		for (char *p = buf;
		     (p = memmem(p, len - (size_t)(p - buf), marker, sizeof(marker))) != NULL; p++)
			found++;
		keep = len < sizeof(marker) - 1 ? len : sizeof(marker) - 1;
		memmove(buf, buf + len - keep, keep);
	}
	close(fd);
	return found;
}

int main(void)
{
	char pattern[128] = "", path[64];
	struct stat st;

	probe_limit();
	probe_read("/proc/sys/kernel/core_pattern", pattern, sizeof(pattern));
	if (strcmp(pattern, "core\n") != 0)
		probe_skip("core_pattern is not 'core'");
	pid_t pid = fork();
	if (pid == 0)
		crash();
	int status = probe_wait(pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		return 77;
	probe_require(WIFSIGNALED(status), "no crash: %#x", (unsigned)status);
	snprintf(path, sizeof(path), "core.%d", (int)pid);
	if (stat(path, &st) != 0 && stat("core", &st) == 0)
		snprintf(path, sizeof(path), "core");
	if (stat(path, &st) != 0)
		probe_skip("no core dump is written here");
	size_t found = count_markers(path);
	unlink(path);
	probe_require((size_t)st.st_size < 240 * MIB, "core dump of %zu MiB",
		      (size_t)st.st_size / MIB);
	probe_require(found >= 50, "only %zu of 50 blocks are in the dump", found);
	return 0;
}
