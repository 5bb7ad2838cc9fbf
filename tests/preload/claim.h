/* SPDX-License-Identifier: MIT */
/*
 * claim: what the preload programs share. A program states claims, each of which prints a line
 * when it does not hold, and ends with claim_end(). It owns no memory and never calls malloc
 * itself, so that a program decides alone what the allocator sees.
 *
 * The library under test is whatever LD_PRELOAD says, so the same program shows how plain libc
 * or another allocator behaves. Helper libraries lie beside the program.
 */
#ifndef TM_TEST_CLAIM_H
#define TM_TEST_CLAIM_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CLAIM_SKIP 77     /* cannot run here */
#define CLAIM_TIMEOUT 124 /* status of a command that hung */

static int claim_failures;

__attribute__((unused, format(printf, 1, 2))) static void claim_say(const char *fmt, ...)
{
	char line[512];
	va_list args;

	va_start(args, fmt);
	int length = vsnprintf(line, sizeof(line) - 1, fmt, args);
	va_end(args);
	if (length < 0)
		return;
	if ((size_t)length > sizeof(line) - 2)
		length = (int)sizeof(line) - 2;
	line[length++] = '\n';
	if (write(2, line, (size_t)length) < 0)
		return;
}

/* Counts a failure; beyond 20 a program repeats itself and is silent. */
__attribute__((unused)) static bool claim_failed(void)
{
	return __atomic_add_fetch(&claim_failures, 1, __ATOMIC_RELAXED) <= 20;
}

#define claim(holds, ...)                                                                          \
	do {                                                                                       \
		if (!(holds) && claim_failed()) {                                                  \
			claim_say("%s:%d: does not hold: %s", __FILE__, __LINE__, #holds);         \
			claim_say("  " __VA_ARGS__);                                               \
		}                                                                                  \
	} while (0)

__attribute__((unused)) static int claim_end(void)
{
	return claim_failures ? 1 : 0;
}

__attribute__((unused)) static int claim_skip(const char *why)
{
	claim_say("skipped: %s", why);
	return CLAIM_SKIP;
}

/* The library under test as LD_PRELOAD names it; "" when there is none. */
__attribute__((unused)) static const char *claim_preload(void)
{
	const char *list = getenv("LD_PRELOAD");

	return list ? list : "";
}

/* Is ours in this process? Some claims are beyond what libc promises. */
__attribute__((unused)) static bool claim_ours(void)
{
	return dlsym(RTLD_DEFAULT, "tiermalloc_version") != NULL;
}

/* Path of a file that lies beside this program, in a ring of four static buffers. */
__attribute__((unused)) static const char *claim_beside(const char *name)
{
	static char paths[4][PATH_MAX];
	static unsigned next;
	char *path = paths[next++ % 4];
	ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);

	if (length < 0)
		return name;
	path[length] = '\0';
	char *slash = strrchr(path, '/');
	size_t room = PATH_MAX - (size_t)(slash + 1 - path);
	snprintf(slash + 1, room, "%s", name);
	return path;
}

/* A file beside us, or libNAME.so as a preload list entry joined to the library under test. */
__attribute__((unused)) static const char *claim_join(const char *first, const char *second)
{
	static char lists[4][4 * PATH_MAX];
	static unsigned next;
	char *list = lists[next++ % 4];

	snprintf(list, sizeof(lists[0]), "%s%s%s", first, *first && *second ? ":" : "", second);
	return list;
}

struct claim_output {
	char text[65536]; /* stdout and stderr together, cut where it does not fit */
	size_t length;
};

static int claim_status(pid_t child, int fd, struct claim_output *out)
{
	struct timespec now;
	int status = 0;

	clock_gettime(CLOCK_MONOTONIC, &now);
	time_t end =
		now.tv_sec + (getenv("TM_LONG") ? 18000 : 600); /* nothing but a hang meets it */
	bool hung = false;
	while (waitpid(child, &status, WNOHANG) == 0) {
		struct pollfd ready = {fd, POLLIN, 0};
		if (poll(&ready, 1, 20) > 0 && (ready.revents & POLLIN)) {
			char scrap[4096];
			size_t room = out ? sizeof(out->text) - 1 - out->length : 0;
			ssize_t got = room ? read(fd, out->text + out->length, room)
					   : read(fd, scrap, sizeof(scrap));
			if (room && got > 0)
				out->length += (size_t)got;
		} else if (ready.revents) {
			usleep(2000);
		}
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec > end && !hung) {
			hung = true;
			kill(child, SIGKILL);
		}
	}
	if (out) {
		fcntl(fd, F_SETFL, O_NONBLOCK);
		ssize_t got;
		while (out->length < sizeof(out->text) - 1 &&
		       (got = read(fd, out->text + out->length,
				   sizeof(out->text) - 1 - out->length)) > 0)
			out->length += (size_t)got;
		out->text[out->length] = '\0';
	}
	if (hung)
		return CLAIM_TIMEOUT;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/*
 * Run a command under the given preload list and wait: its exit status, 128+N for signal N, or
 * CLAIM_TIMEOUT. Its output goes to out when there is one, else nowhere. `env` (NULL: ours) is
 * taken as it is, without a preload list.
 */
__attribute__((unused)) static int claim_run_env(char *const env[], char *const argv[],
						 struct claim_output *out)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return -1;
	if (out)
		out->length = 0;
	fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		dup2(ends[1], 1);
		dup2(ends[1], 2);
		execvpe(argv[0], argv, env);
		_exit(127);
	}
	close(ends[1]);
	int status = claim_status(child, ends[0], out);
	close(ends[0]);
	return status;
}

extern char **environ;

__attribute__((unused)) static int claim_run(const char *preload, char *const argv[],
					     struct claim_output *out)
{
	char list[4 * PATH_MAX];
	char *env[1024];
	size_t n = 0;

	snprintf(list, sizeof(list), "LD_PRELOAD=%s", preload);
	env[n++] = list;
	for (char **e = environ; e && *e && n < 1023; e++)
		if (strncmp(*e, "LD_PRELOAD=", 11) != 0)
			env[n++] = *e;
	env[n] = NULL;
	return claim_run_env(env, argv, out);
}

/* This program again, in the part that `part` names. */
__attribute__((unused)) static int claim_again(const char *preload, const char *part,
					       struct claim_output *out)
{
	char self[PATH_MAX], name[64];
	char *argv[] = {self, name, NULL};
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[length < 0 ? 0 : length] = '\0';
	snprintf(name, sizeof(name), "%s", part);
	return claim_run(preload, argv, out);
}

/* A number of /proc/self/status in KiB ("VmRSS:", "VmSize:"), without stdio's buffer. */
__attribute__((unused)) static long claim_status_kib(const char *key)
{
	char text[8192];
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	ssize_t length = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[length < 0 ? 0 : length] = '\0';
	const char *at = strstr(text, key);
	return at ? strtol(at + strlen(key), NULL, 10) : -1;
}

/* The optimiser may not know where a pointer comes from, nor that nobody reads it. */
__attribute__((unused)) static void *claim_hide(void *p)
{
	__asm__ volatile("" : "+r"(p) : : "memory");
	return p;
}

#endif
