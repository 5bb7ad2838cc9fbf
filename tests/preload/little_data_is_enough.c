/* SPDX-License-Identifier: MIT */
/*
 * H53 H59: bytes that nobody touches count where data is limited (RLIMIT_DATA), so a small program starts and
 * allocates with little of it; and a program that forbids itself more than it has gets ENOMEM from then on,
 * and what it frees serves it again.
 * Failure: the program can't be loaded, has no memory, or crashes.
 */
#include "probe.h"

#define LITTLE (2450 * KIB)
#define BLOCKS 4096

static void set_limit(size_t bytes)
{
	struct rlimit limit;

	probe_require(getrlimit(RLIMIT_DATA, &limit) == 0, "no limit known");
	limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
	probe_require(setrlimit(RLIMIT_DATA, &limit) == 0, "no limit: %s", strerror(errno));
}

static size_t data_bytes(void)
{
	static char text[8192];
	char *at;

	probe_require(probe_read("/proc/self/status", text, sizeof(text)) > 0, "no status");
	at = strstr(text, "VmData:");
	return at ? (size_t)atol(at + 7) * KIB : 0;
}

/* Allocates until there is no more. Returns the bytes. */
static size_t exhaust(char **block, size_t bytes, int *ret_n)
{
	int n = 0;

	while (n < BLOCKS && (errno = 0, block[n] = malloc(bytes)) != NULL)
		memset(block[n++], 1, bytes);
	probe_require(n == BLOCKS || errno == ENOMEM, "%zu bytes: errno is %d", bytes, errno);
	*ret_n = n;
	return (size_t)n * bytes;
}

static void forbid_more(void)
{
	static const size_t sizes[] = {16, 100, 1000, 10000, 60000, 100000, 3000000};
	static char *block[BLOCKS];
	int n;

	set_limit(data_bytes());
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t first = exhaust(block, sizes[i], &n);
		char *more = n == 0 ? NULL : realloc(block[n - 1], sizes[i] * 40 + 10000000);
		int again;

		probe_require(more == NULL, "%zu bytes grew", sizes[i]);
		probe_require(calloc(1, 20 * MIB) == NULL && errno == ENOMEM, "calloc gives more");
		for (int k = 0; k < n; k++)
			free(block[k]);
		size_t second = exhaust(block, sizes[i], &again);
		probe_require(second >= first / 2, "%zu bytes of %zu after the free, of %zu each",
			      second, first, sizes[i]);
		for (int k = 0; k < again; k++)
			free(block[k]);
	}
	set_limit(RLIM_INFINITY);
	probe_require(malloc(20 * MIB) != NULL, "nothing after the limit");
}

int main(int argc, char **argv)
{
	static const size_t few[] = {1, 20, 80, 240, 730, 2200, 6000, 12000, 20000, 30000, 50000};

	probe_limit();
	if (argc == 1) {
		set_limit(LITTLE);
		execl("/proc/self/exe", argv[0], "limited", (char *)NULL);
		probe_end(1, "wrong: cannot run again: %s", strerror(errno));
	}
	for (size_t i = 0; i < sizeof(few) / sizeof(few[0]); i++) {
		char *p = malloc(few[i]);

		probe_require(p != NULL, "no %zu bytes, %zu of data", few[i], data_bytes());
		memset(p, 1, few[i]);
	}
	forbid_more();
	return 0;
}
