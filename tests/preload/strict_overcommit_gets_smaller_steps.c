/* SPDX-License-Identifier: MIT */
/*
 * H54, log 14: where the kernel refuses large writable mappings (overcommit_memory=2, imitated by
 * a filter that refuses more than 4 MiB at once, before the start and later), memory is taken in
 * smaller steps: 200 MiB of blocks up to 2 MiB are all served; what the kernel refuses is NULL
 * with ENOMEM, and the next request is served again.
 * Failure: NULL or abort because the allocator insists on its own large steps.
 */
#include "filter.h"

enum { LIMIT = 16 << 20, BLOCKS = 400 };

static void refuse_large(void)
{
	static const struct filter_rule rules[] = {
		{SYS_mmap, FILTER_ERROR(ENOMEM), LIMIT, PROT_WRITE},
		{SYS_mprotect, FILTER_ERROR(ENOMEM), LIMIT, PROT_WRITE},
		{SYS_brk, SECCOMP_RET_ALLOW, 0, 0},
	};

	if (filter_install(rules, 3, SECCOMP_RET_ALLOW, 0) != 0)
		probe_skip("no seccomp filter: %s", strerror(errno));
}

static void work(void)
{
	static unsigned char *block[BLOCKS];
	uint64_t seed = 5;

	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < BLOCKS; i++) {
			size_t bytes = 1 + probe_random(&seed) % (i % 4 ? 100000 : 2 * MIB);
			block[i] = malloc(bytes);
			probe_require(block[i] != NULL, "malloc(%zu) is NULL", bytes);
			memset(block[i], 1, bytes);
		}
		errno = 0;
		unsigned char *large = malloc(100 * MIB);
		if (large == NULL)
			probe_require(errno == ENOMEM, "errno is %d", errno);
		else
			memset(large, 1, 100 * MIB);
		free(large);
		probe_visit_allocator(1);
		for (size_t i = 0; i < BLOCKS; i++)
			free(block[i]);
	}
}

int main(int argc, char **argv)
{
	probe_limit();
	if (argc > 1) {
		work();
		return 0;
	}
	pid_t pid = fork();
	if (pid == 0) {
		refuse_large();
		execl("/proc/self/exe", argv[0], "work", (char *)NULL);
		_exit(127);
	}
	probe_child_ok(pid, "limit before the start");
	probe_visit_allocator(2);
	refuse_large();
	work();
	return 0;
}
