/* SPDX-License-Identifier: MIT */
/*
 * H67: the library takes no signal: all dispositions and the mask are what they were, before and
 * after work that starts its helper. A signal to the process is handled by the program's own
 * thread, and one that the program has blocked and waits for does not end it by way of a helper.
 * Failure: a handler of ours, a changed mask, a signal taken by a helper thread.
 */
#include "probe.h"
#include <sys/syscall.h>

static volatile sig_atomic_t handled, elsewhere;

static void on_signal(int sig)
{
	(void)sig;
	handled++;
	elsewhere += syscall(SYS_gettid) != getpid();
}

static void require_untouched(const char *when)
{
	struct sigaction action;
	sigset_t mask;

	for (int sig = 1; sig < 65; sig++) {
		if (sig == 32 || sig == 33 || sigaction(sig, NULL, &action) != 0)
			continue;
		bool own = sig == SIGUSR1 && action.sa_handler == on_signal;
		probe_require(own || action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN,
			      "%s: signal %d has a handler", when, sig);
	}
	sigprocmask(SIG_BLOCK, NULL, &mask);
	for (int sig = 1; sig < 65; sig++)
		probe_require(sig == SIGUSR2 || sigismember(&mask, sig) <= 0,
			      "%s: signal %d is blocked", when, sig);
}

static void work(void)
{
	static unsigned char *block[100];

	for (size_t i = 0; i < 100; i++) {
		block[i] = malloc(MIB + i * 4096);
		memset(block[i], 1, MIB + i * 4096);
	}
	for (size_t i = 0; i < 100; i++)
		free(block[i]);
}

int main(void)
{
	sigset_t two;
	struct timespec wait = {0, 20000000};
	int received = 0;

	probe_limit();
	require_untouched("at the start");
	signal(SIGUSR1, on_signal);
	sigemptyset(&two);
	sigaddset(&two, SIGUSR2);
	sigprocmask(SIG_BLOCK, &two, NULL);
	work();
	pid_t parent = getpid(), pid = fork();
	if (pid == 0) {
		for (int i = 0; i < 1000; i++) {
			kill(parent, i % 2 ? SIGUSR1 : SIGUSR2);
			probe_sleep_ms(2);
		}
		_exit(0);
	}
	for (int i = 0; i < 40; i++) {
		work();
		received += sigtimedwait(&two, NULL, &wait) == SIGUSR2;
	}
	probe_child_ok(pid, "sender");
	require_untouched("after work");
	probe_require(handled > 50 && received > 5, "%d and %d signals came", (int)handled,
		      received);
	probe_require(elsewhere == 0, "%d signals went to another thread", (int)elsewhere);
	return 0;
}
