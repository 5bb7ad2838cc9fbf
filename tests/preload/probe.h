/* SPDX-License-Identifier: MIT */
/*
 * probe: what a preload test may look at and how it speaks. Nothing here allocates, so a test can
 * watch the process without waking its allocator. Exit status: 0 right, 77 cannot run here (with
 * the reason on stderr), anything else wrong. A hang is a failure: every test sets probe_limit().
 */
#ifndef TESTS_PRELOAD_PROBE_H
#define TESTS_PRELOAD_PROBE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KIB ((size_t)1024)
#define MIB ((size_t)1024 * 1024)
#define GIB ((size_t)1024 * 1024 * 1024)

__attribute__((format(printf, 2, 3), noreturn)) static inline void probe_end(int status,
									     const char *fmt, ...)
{
	char line[512];
	va_list ap;

	va_start(ap, fmt);
	int n = vsnprintf(line, sizeof(line) - 1, fmt, ap);
	va_end(ap);
	size_t len = n < 0 ? 0 : (size_t)n < sizeof(line) - 1 ? (size_t)n : sizeof(line) - 2;
	line[len++] = '\n';
	ssize_t done = write(STDERR_FILENO, line, len);
	(void)done;
	_exit(status);
}

/* The claim of the test; the message says what was seen instead. */
#define probe_require(cond, ...)                                                                   \
	do {                                                                                       \
		if (!(cond))                                                                       \
			probe_end(1, "wrong: " __VA_ARGS__);                                       \
	} while (0)

#define probe_skip(...) probe_end(77, "skipped: " __VA_ARGS__)

/*
 * How long anything is waited for, in seconds: only what hangs takes so long, on the slowest machine. No
 * test judges by time.
 */
static inline unsigned probe_patience_s(void)
{
	return getenv("TM_LONG") != NULL ? 18000 : 600;
}

/* The default action of SIGALRM ends the program, whatever lock it hangs on. */
static inline void probe_limit(void)
{
	alarm(2 * probe_patience_s());
}

static inline uint64_t probe_now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static inline void probe_sleep_ms(long ms)
{
	struct timespec end;

	/* To a point in time: what is left of a relative sleep grows by the slack with each signal. */
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_nsec += ms % 1000 * 1000000;
	end.tv_sec += ms / 1000 + end.tv_nsec / 1000000000;
	end.tv_nsec %= 1000000000;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR)
		;
}

static inline uint32_t probe_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (uint32_t)(*state >> 16);
}

/* Takes so many blocks of 2 MiB, at most 64, writes them, and frees all: enough for a helper. */
static inline void probe_churn(size_t blocks)
{
	unsigned char *block[64];

	for (size_t i = 0; i < blocks; i++) {
		block[i] = malloc(2 * MIB);
		probe_require(block[i] != NULL, "malloc is NULL");
		memset(block[i], 1, 2 * MIB);
	}
	for (size_t i = 0; i < blocks; i++)
		free(block[i]);
}

/* Bytes read, or -1: at most size - 1, and a 0 is put behind them. */
static inline ssize_t probe_read(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n = 0;

	if (fd < 0)
		return -1;
	while (len < size - 1 && (n = read(fd, buf + len, size - 1 - len)) > 0)
		len += (size_t)n;
	close(fd);
	buf[len] = 0;
	return n < 0 ? -1 : (ssize_t)len;
}

/* The number behind "KEY:" in a file of /proc, or -1. */
static inline long probe_field(const char *path, const char *key)
{
	char buf[8192];
	size_t len = strlen(key);

	if (probe_read(path, buf, sizeof(buf)) < 0)
		return -1;
	for (const char *line = buf; line != NULL; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, len) == 0 && line[len] == ':')
			return strtol(line + len + 1, NULL, 10);
	}
	return -1;
}

/* A line of /proc/PID/status; sizes are KiB. pid 0: ourselves. */
static inline long probe_status(pid_t pid, const char *key)
{
	char path[64] = "/proc/self/status";

	if (pid != 0)
		snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	return probe_field(path, key);
}

static inline size_t probe_rss_anon(pid_t pid)
{
	long kib = probe_status(pid, "RssAnon");

	if (kib < 0)
		probe_skip("no RssAnon in /proc/PID/status");
	return (size_t)kib * KIB;
}

/* Waits until the process's anonymous memory is at most limit; returns what it was at the end. */
static inline size_t probe_wait_rss(pid_t pid, size_t limit)
{
	uint64_t end = probe_now_us() + probe_patience_s() * 1000000ULL;
	size_t rss = probe_rss_anon(pid);

	while (rss > limit && probe_now_us() < end) {
		probe_sleep_ms(50);
		rss = probe_rss_anon(pid);
	}
	return rss;
}

/* The same until it is that much. */
static inline size_t probe_wait_rss_above(pid_t pid, size_t bytes)
{
	uint64_t end = probe_now_us() + probe_patience_s() * 1000000ULL;
	size_t rss = probe_rss_anon(pid);

	while (rss < bytes && probe_now_us() < end) {
		probe_sleep_ms(10);
		rss = probe_rss_anon(pid);
	}
	return rss;
}

static inline long probe_minor_faults(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return u.ru_minflt;
}

/* Waits until the process has no other thread than its first; returns how many it has at the end. */
static inline long probe_wait_threads(pid_t pid)
{
	uint64_t end = probe_now_us() + probe_patience_s() * 1000000ULL;
	long threads = probe_status(pid, "Threads");

	while (threads != 1 && probe_now_us() < end) {
		probe_sleep_ms(50);
		threads = probe_status(pid, "Threads");
	}
	return threads;
}

/* Wait status of a child, or -1 when it hung and had to be killed. */
static inline int probe_wait(pid_t pid)
{
	uint64_t end = probe_now_us() + probe_patience_s() * 1000000ULL;
	int status = 0;

	for (long nap = 0;; nap = nap < 5 ? nap + 1 : 5) {
		if (waitpid(pid, &status, WNOHANG | __WALL) == pid)
			return status;
		if (probe_now_us() >= end)
			break;
		probe_sleep_ms(nap);
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, __WALL);
	return -1;
}

static inline void probe_child_ok(pid_t pid, const char *what)
{
	probe_require(pid > 0, "%s: cannot start a child: %s", what, strerror(errno));
	int status = probe_wait(pid);

	probe_require(status != -1, "%s: the child hangs", what);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		_exit(77);
	probe_require(WIFEXITED(status), "%s: child ended by signal %d", what, WTERMSIG(status));
	probe_require(WEXITSTATUS(status) == 0, "%s: child's exit status %d", what,
		      WEXITSTATUS(status));
}

/* Content that tells whose block it is. */
static inline void probe_fill(void *p, size_t bytes, uint64_t tag)
{
	unsigned char *c = p;

	for (size_t i = 0; i < bytes; i++)
		c[i] = (unsigned char)(tag * 31 + i * 7 + (i >> 8));
}

static inline bool probe_filled(const void *p, size_t bytes, uint64_t tag)
{
	const unsigned char *c = p;

	for (size_t i = 0; i < bytes; i++)
		if (c[i] != (unsigned char)(tag * 31 + i * 7 + (i >> 8)))
			return false;
	return true;
}

static inline bool probe_zero(const void *p, size_t bytes)
{
	const unsigned char *c = p;

	for (size_t i = 0; i < bytes; i++)
		if (c[i] != 0)
			return false;
	return true;
}

/* A visit to every kind of block an allocator has; for children, handlers and odd contexts. */
static inline void probe_visit_allocator(uint64_t seed)
{
	static const size_t sizes[] = {1,    16,    24,    100,    512,    1024,    3000,   8192,
				       5000, 40000, 65536, 100000, 300000, 1 << 20, 5 << 20};
	enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };
	unsigned char *block[SIZES];

	for (size_t i = 0; i < SIZES; i++) {
		block[i] = malloc(sizes[i]);
		probe_require(block[i] != NULL, "malloc(%zu) is NULL", sizes[i]);
		block[i][0] = (unsigned char)(seed + i);
		block[i][sizes[i] - 1] = (unsigned char)(seed + i);
	}
	for (size_t i = 0; i < SIZES; i++) {
		unsigned char want = (unsigned char)(seed + i);
		probe_require(block[i][0] == want && block[i][sizes[i] - 1] == want,
			      "block of %zu bytes was overwritten", sizes[i]);
		if (i % 3 == 0) {
			block[i] = realloc(block[i], sizes[i] * 2);
			probe_require(block[i] != NULL && block[i][0] == want,
				      "realloc of %zu bytes lost its content", sizes[i]);
		}
		free(block[i]);
	}
	unsigned char *zero = calloc(3, 7000);
	probe_require(zero != NULL && probe_zero(zero, 21000), "calloc is not zero");
	memset(zero, 0xa5, 21000);
	free(zero);
}

/* A test program or helper library that lies beside this one. */
static inline void probe_beside(char *ret_path, size_t size, const char *name)
{
	const char *dir = getenv("TM_TESTS");
	char exe[4096];

	if (dir == NULL) {
		ssize_t len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
		probe_require(len > 0, "no /proc/self/exe");
		exe[len] = 0;
		*strrchr(exe, '/') = 0;
		dir = exe;
	}
	int n = snprintf(ret_path, size, "%s/%s", dir, name);
	if (n < 0 || (size_t)n >= size || access(ret_path, R_OK) != 0)
		probe_skip("%s is not built", name);
}

/* Starts this program again with one argument; the environment is the caller's. */
static inline pid_t probe_again(char *self, const char *mode)
{
	char arg[64];
	char *argv[] = {self, arg, NULL};
	pid_t pid;

	snprintf(arg, sizeof(arg), "%s", mode);
	pid = fork();
	if (pid == 0) {
		execv("/proc/self/exe", argv);
		_exit(127);
	}
	return pid;
}

#endif
