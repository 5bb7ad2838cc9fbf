/* SPDX-License-Identifier: MIT */
/*
 * H70 as far as the process itself can: with TIERMALLOC_REPORT=exit one report is there after a
 * return from main, exit, exit in another thread, pthread_exit of main, a handler that calls exit,
 * and a static destructor that frees. After _exit, abort and SIGKILL there is none, and no
 * half-written one. It names what is live and the resident set.
 * Failure: no report, or more than one.
 */
#include "probe.h"
#include <dirent.h>
#include <pthread.h>
#include <sys/stat.h>

static void *live;

static void on_term(int sig)
{
	(void)sig;
	exit(0);
}

static void *exit_here(void *arg)
{
	free(malloc(100));
	exit(0);
	return arg;
}

static void *wait_a_little(void *arg)
{
	probe_sleep_ms(50);
	return arg;
}

__attribute__((destructor)) static void late_free(void)
{
	free(live);
}

static int end(const char *how)
{
	pthread_t t;

	live = calloc(1, 20 * MIB);
	memset(live, 1, 20 * MIB);
	switch (how[0]) {
	case 'e': exit(0);
	case 't':
		pthread_create(&t, NULL, exit_here, NULL);
		pause();
		return 1;
	case 'p': pthread_create(&t, NULL, wait_a_little, NULL); pthread_exit(NULL);
	case 's':
		signal(SIGTERM, on_term);
		raise(SIGTERM);
		return 1;
	case '_': _exit(0);
	case 'a': abort();
	case 'k': raise(SIGKILL); return 1;
	default: return 0;
	}
}

static int count_reports(char *ret_text, size_t size)
{
	DIR *dir = opendir("reports");
	int n = 0;
	char path[512];

	for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "reports/%s", e->d_name);
		probe_read(path, ret_text, size);
		unlink(path);
		n++;
	}
	if (dir != NULL)
		closedir(dir);
	return n;
}

int main(int argc, char **argv)
{
	static const char *const ways[] = {"return", "exit",  "thread", "pthread_exit",
					   "signal", "_exit", "abort",  "kill"};
	static char report[65536];

	probe_limit();
	if (argc > 1)
		return end(argv[1]);
	mkdir("reports", 0700);
	setenv("TIERMALLOC_REPORT", "exit", 1);
	setenv("TIERMALLOC_REPORT_FILE", "reports/%p.txt", 1);
	for (int i = 0; i < 8; i++) {
		pid_t pid = probe_again(argv[0], ways[i]);
		int status = probe_wait(pid), n = count_reports(report, sizeof(report));
		probe_require(status != -1, "%s: no end", ways[i]);
		probe_require(i > 4 || status == 0, "%s: ended with %#x", ways[i],
			      (unsigned)status);
		probe_require(n == (i < 5), "%s: %d reports", ways[i], n);
		if (i < 5)
			probe_require(strcasestr(report, "live") != NULL &&
					      strcasestr(report, "RSS") != NULL,
				      "%s: report without live or RSS: %s", ways[i], report);
	}
	return 0;
}
