/* SPDX-License-Identifier: MIT */
/*
 * plain: runs the tests that the constructors of plain/criterion/criterion.h registered, each in a
 * child of its own, one after the other. The parent has one thread and allocates nothing.
 */
#include "tests/unit/plain/criterion/criterion.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FAILED = 93, SKIPPED = 77 };

static struct plain_test *tests;
static struct plain_suite *suites;
static atomic_int failures; /* in the child: any thread of a test may count */

void plain_add_test(struct plain_test *test)
{
	test->next = tests;
	tests = test;
}

void plain_add_suite(struct plain_suite *suite)
{
	suite->next = suites;
	suites = suite;
}

void plain_fail(const char *file, int line, const char *what, const char *format, ...)
{
	va_list args;

	atomic_fetch_add_explicit(&failures, 1, memory_order_relaxed);
	fprintf(stderr, "%s:%d: does not hold: %s", file, line, what);
	if (*format) {
		fputs(": ", stderr);
		va_start(args, format);
		vfprintf(stderr, format, args);
		va_end(args);
	}
	fputc('\n', stderr);
}

void plain_stop(void)
{
	_exit(FAILED);
}

void plain_skip(const char *format, ...)
{
	va_list args;

	fputs("skipped: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	_exit(SKIPPED);
}

static const struct plain_options *suite_options(const struct plain_test *test)
{
	static const struct plain_options none;
	const struct plain_suite *suite;

	for (suite = suites; suite; suite = suite->next)
		if (strcmp(suite->name, test->suite) == 0)
			return &suite->options;
	return &none;
}

static void run_child(const struct plain_test *test, const struct plain_options *suite)
{
	void (*init)(void) = test->options.init ? test->options.init : suite->init;
	void (*fini)(void) = test->options.fini ? test->options.fini : suite->fini;

	if (init)
		init();
	test->run();
	if (fini)
		fini();
	_exit(atomic_load(&failures) ? FAILED : 0);
}

/* The status of the child; a child that outlives its time is killed. */
static int wait_for(pid_t child, double seconds)
{
	struct timespec nap = {0, 2000000};
	double left;
	int status;

	for (left = seconds; left > 0; left -= .002) {
		if (waitpid(child, &status, WNOHANG) == child)
			return status;
		nanosleep(&nap, NULL);
	}
	kill(child, SIGKILL);
	fprintf(stderr, "no end after %.0f s\n", seconds);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		continue;
	return status;
}

enum outcome { PASSING, FAILING, CRASHING, SKIPPING };

static enum outcome judge(int status, int want_signal, int want_exit)
{
	if (WIFSIGNALED(status))
		return WTERMSIG(status) == want_signal ? PASSING : CRASHING;
	if (want_signal)
		return FAILING;
	if (WEXITSTATUS(status) == SKIPPED && want_exit != SKIPPED)
		return SKIPPING;
	return WEXITSTATUS(status) == want_exit ? PASSING : FAILING;
}

static enum outcome run_one(const struct plain_test *test)
{
	static const char *const words[] = {"PASS", "FAIL", "CRASH", "SKIP"};
	const struct plain_options *suite = suite_options(test);
	double limit = test->options.timeout > 0 ? test->options.timeout : suite->timeout;
	enum outcome outcome;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (child == 0)
		run_child(test, suite);
	if (child < 0)
		return CRASHING;
	outcome = judge(wait_for(child, limit > 0 ? limit : 1200.0),
			test->options.signal ? test->options.signal : suite->signal,
			test->options.exit_code ? test->options.exit_code : suite->exit_code);
	if (outcome != PASSING)
		fprintf(stderr, "[%s] %s::%s\n", words[outcome], test->suite, test->name);
	return outcome;
}

/* An argument is 'suite' or 'suite/name'; without one everything runs. */
static bool wanted(const struct plain_test *test, int argc, char **argv)
{
	size_t length = strlen(test->suite);
	int i;

	for (i = 1; i < argc; i++)
		if (strncmp(argv[i], test->suite, length) == 0 &&
		    (!argv[i][length] ||
		     (argv[i][length] == '/' && strcmp(argv[i] + length + 1, test->name) == 0)))
			return true;
	return argc <= 1;
}

int main(int argc, char **argv)
{
	unsigned count[4] = {0};
	const struct plain_test *test;

	for (test = tests; test; test = test->next)
		if (!test->options.disabled && wanted(test, argc, argv))
			count[run_one(test)]++;
	fprintf(stderr,
		"[====] Synthesis: Tested: %u | Passing: %u | Failing: %u | Crashing: %u | "
		"Skipped: %u\n",
		count[PASSING] + count[FAILING] + count[CRASHING], count[PASSING], count[FAILING],
		count[CRASHING], count[SKIPPING]);
	return count[FAILING] || count[CRASHING];
}
