/* SPDX-License-Identifier: MIT */
/*
 * run_child: see run_child.h. Signals from the kernel or the terminal reach the child directly;
 * those that a process sent to this one alone are forwarded.
 */
#include "tools/cmd/run_child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/cmd.h"
#include "tools/library.h"

static const int passed_on[] = {
	SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH, SIGALRM, SIGPIPE,
};

/* [const while the handlers are set] */
static volatile sig_atomic_t child_pid;

static void pass_on(int signal, siginfo_t *info, void *context)
{
	int saved = errno;

	(void)context;
	/* Positive codes: from the kernel, or from the terminal to the whole group. */
	if (info->si_code <= 0 && child_pid > 0 && info->si_pid != child_pid)
		kill((pid_t)child_pid, signal);
	errno = saved;
}

struct handlers {
	struct sigaction old[TM_ARRAY_LEN(passed_on)];
};

static void set_handlers(struct handlers *ret_old)
{
	struct sigaction action = {.sa_sigaction = pass_on, .sa_flags = SA_SIGINFO};

	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < TM_ARRAY_LEN(passed_on); i++)
		sigaction(passed_on[i], &action, &ret_old->old[i]);
}

static void restore_handlers(const struct handlers *old)
{
	for (size_t i = 0; i < TM_ARRAY_LEN(passed_on); i++)
		sigaction(passed_on[i], &old->old[i], NULL);
}

/*
 * In the child: restores signal handling (ignored signals stay ignored, as with nohup) and executes
 * the command. Reports errno through the pipe.
 */
static void become(char **command, const struct handlers *old, const sigset_t *mask, int tell)
{
	int err;

	restore_handlers(old);
	sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(command[0], command);
	err = errno;
	(void)!write(tell, &err, sizeof(err));
	_exit(127);
}

/* Returns 0 once the command runs, else the errno of its exec. */
static int wait_for_exec(int listen)
{
	int err = 0;
	ssize_t got;

	do
		got = read(listen, &err, sizeof(err));
	while (got < 0 && errno == EINTR);
	return got == (ssize_t)sizeof(err) ? err : 0;
}

static int start(char **command, struct handlers *ret_old, pid_t *ret_pid)
{
	sigset_t all, mask;
	int tell[2];
	pid_t pid;
	int err;

	if (pipe2(tell, O_CLOEXEC) != 0)
		return errno;
	/* No signal may arrive between the fork and the assignment of child_pid. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &mask);
	set_handlers(ret_old);
	pid = fork();
	err = errno;
	if (pid == 0)
		become(command, ret_old, &mask, tell[1]);
	child_pid = pid;
	sigprocmask(SIG_SETMASK, &mask, NULL);
	close(tell[1]);
	if (pid > 0) {
		err = wait_for_exec(tell[0]);
		if (err)
			waitpid(pid, NULL, 0);
	}
	close(tell[0]);
	*ret_pid = pid;
	return err;
}

enum look { LOOK_SEEN, LOOK_NOT_YET, LOOK_ABSENT, LOOK_BLIND };

/*
 * Reads the child's map. Absent: the loader has mapped libc, which it does after the preloads, but
 * not the library.
 */
static enum look look(pid_t pid, const char *library)
{
	char path[64], line[8192];
	bool libc = false, any = false, seen = false;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "re");
	if (maps == NULL)
		return LOOK_BLIND;
	while (!seen && fgets(line, sizeof(line), maps)) {
		any = true;
		seen = strstr(line, library) || strstr(line, "/" TM_LIBRARY_NAME);
		libc |= strstr(line, "/libc.so.") || strstr(line, "/libc-2.");
	}
	fclose(maps);
	if (seen)
		return LOOK_SEEN;
	return !any ? LOOK_BLIND : libc ? LOOK_ABSENT : LOOK_NOT_YET;
}

/* Whether the child has ended. */
static bool has_ended(struct tm_run_end *end, int flags)
{
	pid_t got;

	do
		got = waitpid(end->pid, &end->status, flags);
	while (got < 0 && errno == EINTR);
	return got == end->pid;
}

/*
 * Watches whether the library gets loaded. The loader maps preloads within a millisecond of exec; a
 * loaded machine may take longer. Looks at growing intervals until certain, for at most 3 seconds,
 * while the child runs.
 */
static bool watch(struct tm_run_end *end, const char *library)
{
	unsigned int absent = 0;

	for (int ms = 1; ms <= 1000; ms *= 2) {
		enum look found = look(end->pid, library);

		end->seen |= found == LOOK_SEEN;
		absent += found == LOOK_ABSENT;
		/* Twice, because the map may have been read while the loader was at work. */
		end->looked_long |= absent >= 2;
		if (has_ended(end, WNOHANG))
			return true;
		if (end->seen || end->looked_long)
			break;
		poll(NULL, 0, ms);
	}
	return false;
}

int tm_run_child(struct tm_run_end *ret_end, char **command, const char *library)
{
	struct handlers old;
	int err;

	*ret_end = (struct tm_run_end){.pid = -1};
	err = start(command, &old, &ret_end->pid);
	if (err) {
		restore_handlers(&old);
		tm_say("run: '%s' cannot be started: %s", command[0], strerror(err));
		return TM_EXIT_TROUBLE;
	}
	if (!watch(ret_end, library))
		has_ended(ret_end, 0);
	restore_handlers(&old);
	child_pid = 0;
	return 0;
}

int tm_run_child_status(const struct tm_run_end *end)
{
	const struct rlimit no_core = {0, 0};
	const struct sigaction usual = {.sa_handler = SIG_DFL};
	sigset_t one;
	int signal;

	if (WIFEXITED(end->status))
		return WEXITSTATUS(end->status);
	/* The command has written its own core file, which ours would replace. */
	signal = WTERMSIG(end->status);
	fflush(NULL);
	setrlimit(RLIMIT_CORE, &no_core);
	sigemptyset(&one);
	sigaddset(&one, signal);
	(void)sigaction(signal, &usual, NULL);
	sigprocmask(SIG_UNBLOCK, &one, NULL);
	raise(signal);
	return 128 + signal;
}
