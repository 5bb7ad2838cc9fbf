/* SPDX-License-Identifier: MIT */
/*
 * H66, log 52: a SIGSEGV handler as crash reporters have it calls backtrace_symbols, asprintf and
 * free, on the stack or on an alternate one, whatever the interrupted thread was doing in malloc.
 * Failure: the reporter hangs on the lock the crashed code holds, or crashes again.
 */
#include "probe.h"
#include <execinfo.h>
#include <pthread.h>
#include <sys/syscall.h>

static void on_crash(int sig)
{
	void *frame[32];
	char *text = NULL;
	int n = backtrace(frame, 32);
	char **symbol = backtrace_symbols(frame, n);

	(void)sig;
	probe_require(symbol != NULL, "backtrace_symbols is NULL");
	int len = asprintf(&text, "%d frames, first %s", n, n > 0 ? symbol[0] : "none");
	probe_require(len > 0, "asprintf failed");
	free(text);
	free(symbol);
	probe_visit_allocator(1);
	_exit(0);
}

static void *busy(void *arg)
{
	uint64_t seed = (uintptr_t)arg;

	for (;;)
		free(malloc(1 + probe_random(&seed) % 300000));
	return NULL;
}

static void child(int round)
{
	static char stack[256 * 1024];
	stack_t alternate = {.ss_sp = stack, .ss_size = sizeof(stack)};
	uint64_t seed = (uint64_t)round + 1;
	struct sigaction action;
	struct itimerspec once = {{0, 0}, {0, 0}};
	struct sigevent event;
	timer_t timer;
	pthread_t t;

	probe_limit();
	memset(&action, 0, sizeof(action));
	action.sa_handler = on_crash;
	action.sa_flags = round % 2 ? SA_ONSTACK : 0;
	sigaltstack(&alternate, NULL);
	sigaction(SIGSEGV, &action, NULL);
	pthread_create(&t, NULL, busy, (void *)(uintptr_t)(round + 1));
	memset(&event, 0, sizeof(event));
	event.sigev_notify = SIGEV_SIGNAL;
	event.sigev_signo = SIGSEGV;
	timer_create(CLOCK_MONOTONIC, &event, &timer);
	once.it_value.tv_nsec = 100000 + probe_random(&seed) % 3000000;
	timer_settime(timer, 0, &once, NULL);
	for (;;) {
		void *p = malloc(1 + probe_random(&seed) % 5000);
		void *q = calloc(1, 1 + probe_random(&seed) % 200000);
		free(p);
		free(q);
	}
}

int main(void)
{
	void *frame[4];

	backtrace(frame, 4); /* loads libgcc_s: as reporters do at their start */
	for (int round = 0; round < 60; round++) {
		pid_t pid = fork();
		if (pid == 0)
			child(round);
		probe_child_ok(pid, "crash handler");
	}
	return 0;
}
