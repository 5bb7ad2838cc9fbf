/* SPDX-License-Identifier: MIT */
/*
 * H68: a program is started under a filter that refuses madvise, getrandom, prctl, clone of
 * threads, sched_getaffinity, rseq, membarrier, /proc by readlink and the like, with EPERM or with
 * ENOSYS. It runs, allocates every size and ends with status 0, without a word on stderr.
 * Failure: abort at the start because a probe failed.
 */
#include "filter.h"

static void start(char *self, int error, int quiet)
{
	static const long refused[] = {
		SYS_madvise,      SYS_getrandom,     SYS_prctl,         SYS_sched_getaffinity,
		SYS_rseq,         SYS_clone3,        SYS_clone,         SYS_membarrier,
		SYS_readlinkat,   SYS_sysinfo,       SYS_getcpu,        SYS_gettid,
		SYS_sigaltstack,  SYS_set_mempolicy, SYS_get_mempolicy, SYS_mremap,
		SYS_memfd_create, SYS_mlock,         SYS_clock_getres,
	};
	enum { RULES = sizeof(refused) / sizeof(refused[0]) };
	struct filter_rule rules[RULES];

	for (size_t i = 0; i < RULES; i++)
		rules[i] = (struct filter_rule){refused[i], FILTER_ERROR(error), 0, 0};
	if (filter_install(rules, RULES, SECCOMP_RET_ALLOW, 0) != 0)
		probe_skip("no seccomp filter: %s", strerror(errno));
	dup2(quiet, STDERR_FILENO);
	execl("/proc/self/exe", self, "run", (char *)NULL);
	_exit(127);
}

int main(int argc, char **argv)
{
	static const int errors[] = {EPERM, ENOSYS};
	char said[512];

	probe_limit();
	if (argc > 1) {
		probe_churn(50);
		probe_sleep_ms(700);
		probe_visit_allocator(1);
		return 0;
	}
	for (int i = 0; i < 2; i++) {
		int out = open("said", O_RDWR | O_CREAT | O_TRUNC, 0600);
		pid_t pid = fork();
		if (pid == 0)
			start(argv[0], errors[i], out);
		int status = probe_wait(pid);
		probe_read("said", said, sizeof(said));
		unlink("said");
		close(out);
		probe_require(status == 0, "%s: ended with %#x: %s", strerror(errors[i]),
			      (unsigned)status, said);
		probe_require(said[0] == 0, "%s: stderr: %s", strerror(errors[i]), said);
	}
	return 0;
}
