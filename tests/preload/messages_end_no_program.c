/* SPDX-License-Identifier: MIT */
/*
 * A line of the library's, or a report, that goes into a pipe that nobody reads, or into a file at the limit
 * of lengths (RLIMIT_FSIZE), is lost: it is no reason for SIGPIPE or SIGXFSZ, which would end a program for
 * what it did not write. One of these that waits for the program goes on waiting.
 * Failure: ended by signal 13 or 25.
 */
/* env: TIERMALLOC_HUGE=nonsense TIERMALLOC_REPORT=exit */
#include "probe.h"

static int use(const char *mode)
{
	sigset_t set, waiting;
	static char variable[64];
	void *volatile wrong = variable + 16;

	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	if (mode[0] == 'w') {
		sigprocmask(SIG_BLOCK, &set, NULL);
		raise(SIGPIPE);
	}
	if (mode[0] == 'i')
		signal(SIGPIPE, SIG_IGN);
	free(wrong);
	free(malloc(100));
	sigpending(&waiting);
	if (sigismember(&waiting, SIGPIPE) != (mode[0] == 'w'))
		return 3;
	if (sigismember(&waiting, SIGXFSZ) != 0)
		return 4;
	sigprocmask(SIG_BLOCK, NULL, &set);
	return sigismember(&set, SIGPIPE) == (mode[0] == 'w') ? 0 : 5;
}

static void be(char *self, const char *mode)
{
	struct rlimit none = {0, 0};
	int fd[2];

	if (mode[0] == 'f') {
		fd[1] = open("errors", O_WRONLY | O_CREAT | O_APPEND, 0600);
		setrlimit(RLIMIT_FSIZE, &none);
	} else if (pipe(fd) == 0) {
		close(fd[0]);
	}
	dup2(fd[1], 2);
	execl(self, self, mode, (char *)NULL);
	_exit(9);
}

int main(int argc, char **argv)
{
	static const char *const modes[] = {"closed pipe", "waiting", "ignored", "full file"};

	probe_limit();
	if (argc > 1)
		return use(argv[1]);
	for (int i = 0; i < 4; i++) {
		pid_t pid = fork();

		if (pid == 0)
			be(argv[0], modes[i]);
		probe_child_ok(pid, modes[i]);
	}
	return 0;
}
