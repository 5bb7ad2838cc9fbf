/* SPDX-License-Identifier: MIT */
/*
 * H58, log 59: 200 MiB of churn in mixed sizes keeps at most 1.3 times what is live, also with
 * transparent huge pages for everything (tried where we may set it; it is set back). A program
 * that holds less than 1 MiB has no huge page from its allocator.
 * Failure: huge pages make sparsely used memory resident.
 */
/* serial: yes */
#include "probe.h"

enum { MAX = 1 << 18, LIVE = 100 << 20 };
static const char setting[] = "/sys/kernel/mm/transparent_hugepage/enabled";
static char original[64];

static void set(const char *value)
{
	int fd = open(setting, O_WRONLY | O_CLOEXEC);

	if (fd >= 0) {
		ssize_t n = write(fd, value, strlen(value));
		(void)n;
		close(fd);
	}
}

static void churn(const char *mode)
{
	static unsigned char *block[MAX];
	static size_t bytes[MAX];
	size_t live = 0, most = 0;
	uint64_t seed = 59;

	probe_limit();
	for (int i = 0; i < 50; i++)
		block[i] = calloc(1, 2000);
	long huge = probe_field("/proc/self/smaps_rollup", "AnonHugePages");
	if (mode[0] == 'm') /* with 'always' the stack may have one */
		probe_require(huge <= 0, "%ld KiB in huge pages for 100 KB", huge);
	for (int round = 0; round < 1000000; round++) {
		size_t i = probe_random(&seed) % MAX;
		live -= bytes[i];
		free(block[i]);
		block[i] = NULL;
		bytes[i] = 0;
		if (live < LIVE) {
			bytes[i] =
				probe_random(&seed) % 50 ? 16 + probe_random(&seed) % 1000 : 40000;
			block[i] = malloc(bytes[i]);
			memset(block[i], 1, bytes[i]);
			live += bytes[i];
		}
	}
	size_t rss = probe_rss_anon(0);
	most = live * 13 / 10 + 16 * MIB; /* the tables of this test and a cache */
	probe_require(rss <= most, "%s: %zu MiB resident for %zu MiB live", mode, rss / MIB,
		      live / MIB);
	_exit(0);
}

int main(void)
{
	char text[64] = "";

	probe_read(setting, text, sizeof(text));
	for (int always = 0; always < 2; always++) {
		char *chosen = strchr(text, '[');
		if (always && (chosen == NULL || access(setting, W_OK) != 0))
			break;
		if (always) {
			snprintf(original, sizeof(original), "%.*s", (int)strcspn(chosen + 1, "]"),
				 chosen + 1);
			set("always");
		}
		pid_t pid = fork();
		if (pid == 0)
			churn(always ? "always" : "madvise");
		int status = probe_wait(pid);
		if (always)
			set(original);
		probe_require(status == 0, "churn ended with %#x", (unsigned)status);
	}
	return 0;
}
