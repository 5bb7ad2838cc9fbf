/* SPDX-License-Identifier: MIT */
/*
 * H68, log 54: after main has started, a seccomp filter allows the few memory calls, futex and
 * clock_gettime, and kills or refuses everything else: no file is opened, no thread started, no
 * process asked about. Freeing 300 MiB, idle time and malloc_trim still give memory back; a thread
 * started before and freed blocks of all sizes work. With the refusing filter the exit report is
 * asked for, too.
 * Failure: SIGSYS, or memory that stays.
 */
#include "filter.h"
#include <malloc.h>
#include <pthread.h>

static _Atomic int phase, started;

static void *early_thread(void *arg)
{
	started = 1;       /* libc registers the thread by calls that the filter has not */
	while (phase == 0) /* its first allocation is made under the filter */
		probe_sleep_ms(1);
	probe_visit_allocator(2);
	phase = 2;
	for (;;) /* ending a thread takes calls that the filter has not */
		probe_sleep_ms(1000);
	return arg;
}

static void burst(void)
{
	static unsigned char *block[100], *small[20000];

	for (size_t i = 0; i < 100; i++) {
		block[i] = malloc(3 * MIB);
		probe_require(block[i] != NULL, "malloc is NULL");
		memset(block[i], 1, 3 * MIB);
	}
	for (size_t i = 0; i < 20000; i++)
		small[i] = calloc(1, i);
	for (size_t i = 0; i < 20000; i++)
		free(small[i]);
	for (size_t i = 0; i < 100; i++)
		free(block[i]);
}

static size_t resident(int statm)
{
	char text[128] = "";
	long size, pages;

	ssize_t n = pread(statm, text, sizeof(text) - 1, 0);
	return n > 0 && sscanf(text, "%ld %ld", &size, &pages) == 2 ? (size_t)pages * 4096 : 0;
}

static void filtered(uint32_t otherwise)
{
	static const long allowed[] = {
		SYS_read,         SYS_write,           SYS_pread64, SYS_mmap,  SYS_munmap,
		SYS_mremap,       SYS_mprotect,        SYS_madvise, SYS_futex, SYS_clock_gettime,
		SYS_nanosleep,    SYS_clock_nanosleep, SYS_brk,     SYS_exit,  SYS_exit_group,
		SYS_rt_sigreturn, SYS_set_robust_list,
	};
	enum { RULES = sizeof(allowed) / sizeof(allowed[0]) };
	struct filter_rule rules[RULES];
	int statm = open("/proc/self/statm", O_RDONLY);
	pthread_t t;

	probe_limit();
	probe_visit_allocator(1);
	probe_require(pthread_create(&t, NULL, early_thread, NULL) == 0, "no thread");
	while (started == 0)
		probe_sleep_ms(1);
	for (size_t i = 0; i < RULES; i++)
		rules[i] = (struct filter_rule){allowed[i], SECCOMP_RET_ALLOW, 0, 0};
	if (filter_install(rules, RULES, otherwise, SECCOMP_FILTER_FLAG_TSYNC) != 0)
		probe_skip("no seccomp filter: %s", strerror(errno));
	phase = 1;
	while (phase != 2)
		probe_sleep_ms(1);
	burst();
	for (int i = 0; i < 25; i++) { /* idle, with a call now and then */
		probe_sleep_ms(100);
		free(malloc(100 + (size_t)i * 3000));
	}
	burst();
	malloc_trim(0);
	size_t rss = resident(statm);
	probe_require(rss < 60 * MIB, "%zu MiB stay under the filter", rss / MIB);
	probe_visit_allocator(3);
	exit(0);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		filtered(argv[1][0] == 'k' ? SECCOMP_RET_KILL_PROCESS : FILTER_ERROR(EPERM));
	probe_child_ok(probe_again(argv[0], "kill"), "killing filter");
	probe_child_ok(probe_again(argv[0], "refuse"), "refusing filter");
	setenv("TIERMALLOC_REPORT", "exit", 1);
	probe_child_ok(probe_again(argv[0], "refuse"), "refusing filter, report");
	return 0;
}
