/* SPDX-License-Identifier: MIT */
/*
 * H71, H72, log 74: a program closes all its descriptors, stderr too, and opens its own files,
 * which get the old numbers; or it is started without descriptors 0, 1 and 2 and with a variable
 * that deserves a warning. Its files hold its own text and nothing else when it has ended, with a
 * report to stderr and with one to a file, and stdout never holds a byte of ours.
 * Failure: a report or warning in the program's data (several loggers and heap profilers).
 */
#include "probe.h"
#include <sys/syscall.h>

static const char text[] = "the program's own line\n";

/* Every file lands on a low number, those of stdout and stderr among them. */
static void own_files(int close_first)
{
	char name[32];

	if (close_first)
		for (int fd = 0; fd < 64; fd++)
			close(fd);
	void *big = malloc(20 * MIB);
	memset(big, 1, 20 * MIB);
	for (int i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "file%d", i);
		int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
		if (fd < 0 || write(fd, text, sizeof(text) - 1) != sizeof(text) - 1)
			_exit(3);
	}
	free(big);
	probe_visit_allocator(1);
	exit(0);
}

static void require_own_text(const char *what)
{
	char name[32], seen[4096];

	for (int i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "file%d", i);
		ssize_t n = probe_read(name, seen, sizeof(seen));
		probe_require(n >= 0, "%s: %s is missing", what, name);
		probe_require(strcmp(seen, text) == 0, "%s: %s holds: %s", what, name, seen);
		unlink(name);
	}
}

static void run(char *self, const char *mode, int without_descriptors)
{
	pid_t pid = fork();

	if (pid == 0) {
		if (without_descriptors)
			syscall(SYS_close_range, 0U, ~0U, 0U);
		execl("/proc/self/exe", self, mode, (char *)NULL);
		_exit(127);
	}
	probe_child_ok(pid, mode);
	require_own_text(mode);
}

static void require_clean_stdout(char *self)
{
	char seen[4096];
	int out = open("out", O_RDWR | O_CREAT | O_TRUNC, 0600);
	pid_t pid = fork();

	if (pid == 0) {
		dup2(out, STDOUT_FILENO);
		execl("/proc/self/exe", self, "print", (char *)NULL);
		_exit(127);
	}
	probe_child_ok(pid, "print");
	probe_read("out", seen, sizeof(seen));
	probe_require(strcmp(seen, "{\"json\": true}\n") == 0, "stdout is: %s", seen);
	close(out);
}

int main(int argc, char **argv)
{
	probe_limit();
	if (argc > 1 && strcmp(argv[1], "print") == 0) {
		free(malloc(20 * MIB));
		puts("{\"json\": true}");
		return 0;
	}
	if (argc > 1)
		own_files(strcmp(argv[1], "closes") == 0);
	setenv("TIERMALLOC_REPORT", "exit", 1);
	setenv("TIERMALLOC_NO_SUCH_NAME", "1", 1);
	for (int file = 0; file < 2; file++) {
		run(argv[0], "closes", 0);
		run(argv[0], "has none", 1);
		require_clean_stdout(argv[0]);
		setenv("TIERMALLOC_REPORT_FILE", "%p.report", 1);
	}
	return 0;
}
